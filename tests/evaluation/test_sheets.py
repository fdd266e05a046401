from spit.evaluation.sheets import Sheet


def test_markdown() -> None:
    sheet = Sheet("Title", ["model", "top-1"], [["a|b", "0.5"]], "About.", notes="Notes.")
    assert sheet.markdown() == ("# Title\n\nAbout.\n\n| model | top-1 |\n|---|---:|\n| a&#124;b | 0.5 |\n\nNotes.\n")
