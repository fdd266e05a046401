import pytest
from rich.console import Console

from spit.cli import console
from spit.cli.console import LongBar


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "PATIENCE", 0)
    with LongBar(Console(stderr=True)) as bar:
        task = bar.add_task("Starting", total=None)
        bar.update(task, completed=1)
        bar.update(task, description="Looking", completed=2, total=5)
    assert capsys.readouterr().err == "spit: Starting\nspit: Looking, 2 of 5\n"


def test_not_more_than_one_in_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    with LongBar(Console(stderr=True)) as bar:
        bar.update(bar.add_task("Starting", total=3), completed=1)
    assert capsys.readouterr().err == ""


def test_a_caller_with_lines_of_its_own(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "PATIENCE", 0)
    with LongBar(Console(stderr=True), lines=False) as bar:
        bar.update(bar.add_task("Starting", total=3), completed=1)
    assert capsys.readouterr().err == ""
