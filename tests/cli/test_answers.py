"""Each image is answered once: resumed, side by side, in processes, and one that fails stops no other."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch

from spit.cli.answers import answer_each, side_by_side
from spit.cli.console import Say
from spit.cli.inputs import Document, Input, find_inputs
from spit.cli.results import LOCK, Results
from spit.cli.workers import work_apart
from spit.errors import ImageError, SpitError
from spit.interruption import may_stop
from spit.kernels.concurrency import torch_threads
from spit.locks import locked


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


@dataclass(frozen=True)
class Work:
    """Writes a document; in a process it does as the name of the image says."""

    results: Results

    def __call__(self, item: Input, _: Say) -> Document:
        if item.stem.name == "refused":
            raise ImageError("torn\nin two")
        if item.stem.name == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if item.stem.name == "full":
            raise OSError(28, "No space left on device")
        if item.stem.name == "bug":
            raise KeyError("a bug")
        while item.stem.name == "long":
            may_stop()
        return self.results.write(item, {"threads": torch.get_num_threads()}, {"copy": ("copy.txt", b"1")})


def run(folder: Path, workers: int = 0, again: bool = False, **settings: Any) -> list[str]:
    """The names of the images that a run worked on."""
    inputs = find_inputs([folder / "in"], folder / "out")
    results = Results.of(inputs, folder / "out", "json", again, **settings)
    worked: list[str] = []

    def work(item: Input, say: Say) -> Document:
        worked.append(item.stem.name)
        return Work(results)(item, say)

    assert answer_each(inputs, "Working", work, lambda _: None, False, results, workers) == 0
    return worked


def test_an_image_is_done_again_if_it_or_a_setting_or_a_file_has_changed(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.png", "in/b.png")
    assert run(tmp_path, tau=(1, 2)) == ["a", "b"]
    assert run(tmp_path, tau=(1, 2)) == []
    assert run(tmp_path, again=True, tau=(1, 2)) == ["a", "b"]
    assert run(tmp_path, tau=(1, 3)) == ["a", "b"]
    (tmp_path / "in/a.png").write_text("another")
    assert run(tmp_path, tau=(1, 3)) == ["a"]
    (tmp_path / "out/b.copy.txt").unlink()
    assert run(tmp_path, tau=(1, 3)) == ["b"]


def test_the_summary_says_what_was_done_earlier(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    touch(tmp_path, "in/a.png", "in/b.png")
    run(tmp_path)
    touch(tmp_path, "in/c.png")
    capsys.readouterr()
    assert run(tmp_path) == ["c"]
    assert capsys.readouterr().out == "2 of 3 were done earlier with these settings; --again repeats them\n"


@pytest.mark.parametrize("content", ['{"shapes": [], "files": {}}', '{"spit": "0.1.0", "fil', "[]"])
def test_a_document_of_the_user_is_not_replaced(content: str, tmp_path: Path) -> None:
    touch(tmp_path, "in/a.png")
    file = tmp_path / "out/a.json"  # as annotation tools write it beside the photo, or cut off
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(ValueError, match=r"a\.json"):
        run(tmp_path)
    assert file.read_text() == content


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.png")
    with locked(tmp_path / "out" / LOCK), pytest.raises(ValueError, match="another command is writing"):
        run(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOCK).touch()  # of a command that was killed
    assert run(tmp_path) == ["a"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.copy.txt", "a.json"]


def apart(folder: Path, *names: str, count: int = 2) -> dict[str, Document | str]:
    touch(folder, *(f"in/{name}.png" for name in names))
    inputs = find_inputs([folder / "in"], folder / "out")
    results = Results.of(inputs, folder / "out", "json", False)
    return {item.stem.name: answer for item, answer in work_apart(Work(results), inputs, count)}


def test_answers_and_failures_of_workers(tmp_path: Path) -> None:
    answers = apart(tmp_path, "a", "b", "c", "refused")
    assert all(isinstance(answers.pop(name), dict) for name in "abc")
    assert answers == {"refused": "torn in two"}


@pytest.mark.parametrize(("name", "error"), [("full", OSError), ("bug", KeyError), ("killed", SpitError)])
def test_other_errors_of_a_worker_end_the_run(name: str, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error, match=r"No space|a bug|fewer --workers") as raised:
        apart(tmp_path, name, "z")
    assert name == "killed" or "in __call__" in raised.value.__notes__[0], "the worker's traceback"


def test_the_images_in_work_are_left_where_a_run_ends(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.png", "in/long.png")
    inputs = find_inputs([tmp_path / "in"], tmp_path / "out")
    answers = work_apart(Work(Results.of(inputs, tmp_path / "out", "json", False)), inputs, 2)
    assert next(answers)[0].stem.name == "a"
    answers.close()
    assert not psutil.Process().children()
    assert not (tmp_path / "out/long.json").exists()


@pytest.mark.parametrize(("verb", "options"), [
    ("tokenize", []), ("segment", ["--size", "64"]), ("explain", ["--size", "64", "--method", "flow"])])
def test_answers_of_processes_are_those_of_one(verb: str, options: list[str], tmp_path: Path, spit: Callable[..., Any],
                                               photo: Callable[..., Path]) -> None:
    for index in range(3):
        photo(tmp_path / f"in/{index}.png", 160, 120, index)
    (tmp_path / "in/broken.png").write_bytes(b"no image")
    answers = []
    for workers in (0, 2):
        out = tmp_path / str(workers)
        result = spit(verb, tmp_path / "in", "-o", out, "--device", "cpu", "--workers", workers, *options, "--json")
        assert result.code == 2, "one image is broken"
        assert [Path(failure["image"]).name for failure in result.json["failed"]] == ["broken.png"]
        answers.append((result.json["images"], {path.name: path.read_bytes() for path in out.iterdir()}))
    assert answers[0] == answers[1]
    assert len(answers[0][0]) == 3


@pytest.mark.parametrize(("workers", "end"), [(0, signal.SIGTERM), (2, signal.SIGINT), (2, signal.SIGKILL)])
def test_a_run_that_is_ended_leaves_nothing_half_done(workers: int, end: signal.Signals, tmp_path: Path,
                                                      photo: Callable[..., Path]) -> None:
    for index in range(60):
        photo(tmp_path / f"in/{index:02d}.png", 500, 500, seed=index)
    command = subprocess.Popen(
        [sys.executable, "-m", "spit.cli", "tokenize", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--device",
         "cpu", "--workers", str(workers)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,  # and Ctrl-C works, also where these tests run in the background of a shell
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    while not [*tmp_path.glob("out/*.json")]:
        assert command.poll() is None, command.communicate()
        time.sleep(0.01)
    children = psutil.Process(command.pid).children()
    if end == signal.SIGINT:
        os.killpg(command.pid, end)  # as Ctrl-C, which reaches the workers too
    else:
        command.send_signal(end)
    _, said = command.communicate(timeout=240)
    assert not psutil.wait_procs(children, timeout=60)[1]
    if end != signal.SIGKILL:
        assert (command.returncode, said) == (130, "spit: stopped; the same command continues with the remaining "
                                                   "images\n")
        assert not [*tmp_path.glob("out/.*")]


def test_links_in_a_circle_are_reported(tmp_path: Path, spit: Callable[..., Any], photo: Callable[..., Path]) -> None:
    photo(tmp_path / "in/a.png")
    (tmp_path / "in/loop.png").symlink_to(tmp_path / "in/loop.png")
    result = spit("tokenize", tmp_path / "in", "-o", tmp_path / "out", "--device", "cpu")
    assert result.code == 2
    assert "loop.png" in result.err


def test_one_that_fails_does_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    touch(tmp_path, "a.png", "b.png", "c.png")

    def work(item: Input, _: Say) -> Document:
        if item.path.name == "b.png":
            raise ImageError(f"{item.path}: torn\nin two")
        return {"image": item.path.name}

    shown: list[Document] = []
    assert answer_each(find_inputs([tmp_path]), "Working", work, shown.extend, as_json=False) == 2
    assert shown == [{"image": "a.png"}, {"image": "c.png"}]
    capsys.readouterr()
    assert answer_each(find_inputs([tmp_path]), "Working", work, shown.extend, as_json=True, of="all") == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"of": "all", "images": shown, "failed": [
        {"image": str(tmp_path / "b.png"), "error": f"{tmp_path / 'b.png'}: torn in two"}]}
    assert captured.err == f"spit: {tmp_path / 'b.png'}: torn in two\nspit: 1 of 3 images failed\n"


def test_errors_of_the_machine_stop_everything(tmp_path: Path) -> None:
    touch(tmp_path, "a.png", "b.png")
    done: list[Path] = []

    def work(item: Input, _: Say) -> Document:
        done.append(item.path)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        answer_each(find_inputs([tmp_path]), "Working", work, print, as_json=False)
    assert len(done) == 1


def test_the_error_of_a_single_image_is_raised(tmp_path: Path, photo: Callable[..., Path]) -> None:
    def work(item: Input, _: Say) -> Document:
        raise ImageError("torn")

    with pytest.raises(ImageError, match="torn"):
        answer_each(find_inputs([photo(tmp_path / "a.png")]), "Working", work, print, as_json=False)


def test_what_is_said_is_a_line_after_a_while_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a.png")
    now = [0.0]
    monkeypatch.setattr("spit.cli.console.time", SimpleNamespace(monotonic=lambda: now[0]))

    def work(item: Input, say: Say) -> Document:
        for second in (1, 9, 11, 15, 22):
            now[0] = second
            say(f"{item.path.name}: second {second}")
        return {}

    answer_each(find_inputs([tmp_path]), "Working", work, print, as_json=False)
    assert capsys.readouterr().err == "spit: a.png: second 11\nspit: a.png: second 22\n"


def test_images_side_by_side(tmp_path: Path) -> None:
    items = [Input(Path(name), PurePath(name)) for name in "abCDefghijk"]

    def groups(alone: Callable[[Input], bool] | None) -> list[str]:
        return ["".join(item.path.name for item in group) for group in side_by_side(iter(items), alone)]

    assert groups(None) == list("abCDefghijk")
    with torch_threads(1):
        assert groups(lambda item: item.path.name.isupper()) == ["ab", "C", "D", "efgh", "ijk"]


def test_each_image_of_a_group_answers_or_fails_for_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = [Input(Path(f"{number}.png"), PurePath(str(number))) for number in range(5)]
    shown: list[dict[str, Any]] = []

    def work(item: Input, say: Any) -> dict[str, Any]:
        if item.stem.name == "3":
            raise ImageError(f"{item.path}: broken")
        return {"image": item.stem.name, "threads": torch.get_num_threads()}

    with torch_threads(2):
        assert answer_each(items, "Working", work, shown.extend, False, alone=lambda item: False) == 2
    assert shown == [{"image": name, "threads": 1} for name in "0124"]
    assert capsys.readouterr().err == "spit: 3.png: broken\nspit: 1 of 5 images failed\n"
