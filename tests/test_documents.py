import pytest

from spit.documents import read_json, read_toml


def test_documents_are_read() -> None:
    assert read_json(b'{"a": [1]}') == {"a": [1]}
    assert read_toml("[a]\nb = 1") == {"a": {"b": 1}}


@pytest.mark.parametrize("text", ["", "{", "[" * 200_000, '{"a":' * 200_000, "[" * 200_000 + "]" * 200_000])
def test_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_json(text)


@pytest.mark.parametrize("text", ["=", "x = " + "[" * 50_000, "x = " + "{a=" * 50_000])
def test_no_toml_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_toml(text)
