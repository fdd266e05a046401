"""A run of training on stderr."""

import logging
import time

import pytest

from spit.cli.watching import in_words, watching


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with watching(True) as listener:
        listener.begin(0, 100)
        for step, seconds in ((1, 50), (2, 10), (3, 10), (4, 10)):
            now[0] += seconds
            listener.advance(step)
        listener.figures({"kind": "train", "step": 4, "loss": 0.5, "lr": 1e-3, "images_per_second": 7.25})
        listener.figures({"kind": "validation", "step": 4, "epoch": 1, "top1": 0.25, "loss": 2.0})
        logging.getLogger("spit").warning("a photo [bold] was skipped")
        listener.say("done")
    logging.getLogger("spit").warning("nobody listens")
    lines = [line for line in capsys.readouterr().err.splitlines() if line]
    assert lines[:6] == [
        "step 1/100 about 1 h 22 min left",  # 50 s, which may have compiled: later steps are measured without it
        "step 4/100 about 16 min left",  # 96 steps of 10 s
        "step 4/100 loss 0.5000 lr 1.00e-03 7.2 im/s about 16 min left",
        "step 4/100 validation top-1 25.0 % loss 2 about 16 min left",
        "spit: a photo [bold] was skipped", "done"]
    assert "nobody" not in "".join(lines)


def test_other_processes_are_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with watching(False) as listener:
        listener.begin(0, 2)
        listener.advance(1)
        listener.say("done")
    assert capsys.readouterr().err.strip() == ""


def test_figures_in_words() -> None:
    line = {"kind": "validation", "step": 4, "epoch": 3.2, "top1": 0.5, "top5": 1.0, "loss": 1.23456}
    assert in_words(line) == ["top-1 50.0 %", "top-5 100.0 %", "loss 1.235"]
