import pytest

from spit.documents import Sheet, as_latex, differences, read_json


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


@pytest.mark.parametrize(("text", "latex"), [
    ("spit_tiny_16 & 50 %", r"spit\_tiny\_16 \& 50 \%"),
    (r"a\b{c}~^", r"a\textbackslash{}b\{c\}\textasciitilde{}\textasciicircum{}"),
    ("own", "own"), ("+0.003 ± 0.018; paper -0.200", r"+0.003 $\pm$ 0.018; paper $-$0.200"), ("[a]", "{[}a]"),
    ("Comp ↑, p < 1e-10", r"Comp $\uparrow$, p $<$ 1e-10"), ("vit-2", "vit-2"),
])
def test_signs_of_latex_are_escaped(text: str, latex: str) -> None:
    assert as_latex(text) == latex


def test_a_table_for_a_paper() -> None:
    sheet = Sheet(["model", "top-1"], [["a_b", "0.5"], ["c", "-0.5"]], title="Title", marked=[1])
    assert sheet.latex().splitlines() == [
        "% Title", r"\begin{tabular}{lr}", r"\toprule", r"model & top-1 \\", r"\midrule", r"a\_b & 0.5 \\",
        r"\textbf{c} & $-$0.5 \\", r"\bottomrule", r"\end{tabular}"]
