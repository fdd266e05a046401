import pytest

from spit.documents import differences, read_json


def test_documents_are_read() -> None:
    assert read_json(b'{"a": [1]}') == {"a": [1]}


def test_differences_are_told_by_their_keys() -> None:
    old, new = {"a": {"b": 1, "c": "x" * 50}, "d": [1]}, {"a": {"b": None, "c": "y"}, "d": [1], "e": True}
    assert differences(old, old) == ""
    assert differences(old, new) == f'a.b was 1, is not set; a.c was "{"x" * 40}…", is "y"; e was not set, is true'
    assert differences(old, old | {"d": []}) == "d was [1], is []"
    assert differences({}, dict(zip("abcde", range(5), strict=True))).endswith("c was not set, is 2; and 2 more")


@pytest.mark.parametrize("text", ["", "{", "[" * 200_000, '{"a":' * 200_000, "[" * 200_000 + "]" * 200_000])
def test_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_json(text)
