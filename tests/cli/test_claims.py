"""Several processes on one folder of images: each image is done once."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spit.cli.claims import Shared
from spit.cli.console import Say
from spit.cli.inputs import Document, Input, answer_each, find_inputs

COUNT = 12
RUN = """
import sys, time
from pathlib import Path
from spit.cli.claims import Shared
from spit.cli.inputs import answer_each, find_inputs

folder = Path(sys.argv[1])
inputs = find_inputs([folder / "in"], folder / "out")
shared = Shared(inputs, "json", {"a": 1})
done = []

def work(item, say):
    time.sleep(0.05)
    done.append(item.path.name)
    return item.write("json", {"key": shared.key(item)}, {"copy": ("copy.png", item.path.read_bytes())})

(folder / f"ready-{sys.argv[2]}").touch()
while not (folder / "go").exists():
    time.sleep(0.01)
code = answer_each(inputs, "Working", work, print, True, shared)
print(*done, file=sys.stderr)
sys.exit(code)
"""


def images(folder: Path, count: int = COUNT) -> list[Input]:
    (folder / "in").mkdir()
    for index in range(count):
        (folder / f"in/{index:02d}.png").write_text(f"image {index}")
    return find_inputs([folder / "in"], folder / "out")


def worker(shared: Shared, done: list[str]) -> Callable[[Input, Say], Document]:
    def work(item: Input, _: Say) -> Document:
        done.append(item.path.stem)
        return item.write("json", shared.about_run(item), {})

    return work


def run(inputs: list[Input], shared: Shared) -> list[str]:
    done: list[str] = []
    assert answer_each(inputs, "Working", worker(shared, done), lambda _: None, False, shared) == 0
    return done


def test_two_processes_do_each_image_once(tmp_path: Path) -> None:
    images(tmp_path)
    runs = [subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path), str(number)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) for number in range(2)]
    while not all((tmp_path / f"ready-{number}").exists() for number in range(2)):
        assert all(one.poll() is None for one in runs), [one.communicate() for one in runs]
    (tmp_path / "go").touch()
    answers = [one.communicate(timeout=120) for one in runs]
    names = [f"{index:02d}.png" for index in range(COUNT)]
    assert sorted(name for _, done in answers for name in done.split()) == names
    assert all(done for _, done in answers), "both took part"
    for out, _ in answers:
        assert len(json.loads(out)["images"]) == COUNT, "each answers for all images"
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


def test_an_image_in_work_elsewhere_comes_last(tmp_path: Path) -> None:
    inputs = images(tmp_path, 3)
    shared, other = (Shared(inputs, "json", {}) for _ in range(2))
    done: list[str] = []
    claim = other.claim(inputs[0], wait=False)
    assert claim.__enter__()

    def work(item: Input, say: Say) -> Document:
        if item is inputs[2]:
            claim.__exit__(None, None, None)  # the other ends without an answer, as if killed
        return worker(shared, done)(item, say)

    documents: list[Document] = []
    answer_each(inputs, "Working", work, documents.extend, False, shared)
    assert done == ["01", "02", "00"]
    assert [Path(one["image"]).stem for one in documents] == ["00", "01", "02"], "answers keep their order"


def test_a_later_run_replaces_what_an_earlier_one_wrote(tmp_path: Path) -> None:
    inputs = images(tmp_path, 2)
    assert run(inputs, Shared(inputs, "json", {})) == ["00", "01"]
    assert run(inputs, Shared(inputs, "json", {})) == ["00", "01"]
    assert run(inputs, Shared(inputs, "json", {}, earlier=True)) == []
    assert run(inputs, Shared(inputs, "json", {"other": 1}, earlier=True)) == ["00", "01"]


def test_a_changed_image_is_done(tmp_path: Path) -> None:
    inputs = images(tmp_path, 2)
    assert run(inputs, Shared(inputs, "json", {})) == ["00", "01"]
    inputs[0].path.write_text("another")
    assert run(inputs, Shared(inputs, "json", {}, earlier=True)) == ["00"]


def test_files_of_other_settings_are_refused_beside_them_and_replaced(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = images(tmp_path, 2)
    assert run([first], Shared([first], "json", {"verb": "a", "cut": {"tau": 1, "lines": (1, 2)}})) == ["00"]
    assert run([second], Shared([second], "json", {"verb": "a", "cut": {"tau": 1, "lines": (1, 2)}})) == ["01"]
    told = r"01\.json was made with other options: tau was 1, is not set; lines was \[1, 2\], is \[\]; choose"
    with pytest.raises(ValueError, match=told):
        Shared([first], "json", {"verb": "a", "cut": {"tau": None, "lines": ()}})
    Shared([first], "json", {"verb": "b"})  # another verb's files have other names
    assert capsys.readouterr().err == ""
    assert run([first, second], Shared([first, second], "json", {"verb": "a", "cut": {"tau": 2, "lines": (1, 2)}})) == [
        "00", "01"], "none is left"
    assert capsys.readouterr().err == (f"spit: {tmp_path / 'out'}: replacing the files of 2 images, made with other "
                                       "options: tau was 1, is 2\n")


def test_photos_that_were_made_in_different_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = inputs = images(tmp_path, 2)

    def shared(inputs: list[Input], **methods: int) -> Shared:
        return Shared(inputs, "json", {"verb": "a", "methods": methods}, apart=lambda key: key.startswith("methods."))

    run([first], shared([first], lime=1))
    run([second], shared([second], flow=1))
    assert capsys.readouterr().err == ""
    run(inputs, shared(inputs, flow=2, lime=2))
    assert capsys.readouterr().err == (f"spit: {tmp_path / 'out'}: replacing the files of 2 images, made otherwise; "
                                       "00.json was made with other options: lime was 1, is 2\n")


@pytest.mark.parametrize(("options", "told"), [
    ({"tau": 1}, ""), ({"tau": 2}, " and with other options: tau was 1, is 2")])
def test_another_version_is_told_beside_other_options(options: dict[str, int], told: str, tmp_path: Path,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    first, second = images(tmp_path, 2)
    old, new = ({"verb": "a", **one} for one in ({"tau": 1, "spit": "0.1.0"}, {**options, "spit": "0.2.0"}))
    assert run([first], Shared([first], "json", old)) == ["00"]
    by = f"made by spit 0.1.0, whose answers may differ from those of 0.2.0{told}"
    with pytest.raises(ValueError, match=f"00.json was {by}; choose another --output, or remove the earlier files"):
        Shared([second], "json", new)
    assert run([first], Shared([first], "json", new, earlier=True)) == ["00"]
    assert capsys.readouterr().err.endswith(f"replacing the files of 1 image, {by}\n")


@pytest.mark.parametrize("content", ['{"shapes": [], "files": {}}', '{"spit": "0.1.0", "fil', "[]"])
def test_a_document_of_the_user_is_not_replaced(content: str, tmp_path: Path) -> None:
    inputs = images(tmp_path, 2)
    file = tmp_path / "out/01.json"  # as annotation tools write it beside the photo, or cut off
    file.parent.mkdir()
    file.write_text(content)
    told = r"01\.json would be replaced, but spit did not write it, or it is damaged; choose another --output"
    with pytest.raises(ValueError, match=told):
        Shared(inputs, "json", {"verb": "a"})
    assert file.read_text() == content


def test_options_of_a_method_are_told_with_its_name(tmp_path: Path) -> None:
    first, second = images(tmp_path, 2)
    settings = {"verb": "a", "methods": {"lime": {"samples": 1}}}
    run([first], Shared([first], "json", settings))
    with pytest.raises(ValueError, match=r"options: lime\.samples was 1, is 2; choose"):
        Shared([second], "json", settings | {"models": {}, "methods": {"lime": {"samples": 2}}})


def test_runs_with_other_options_at_one_time_are_refused(tmp_path: Path) -> None:
    first, second = images(tmp_path, 2)
    done: list[str] = []
    one, same, other = (Shared([item], "json", {"verb": "a", "tau": tau}) for item, tau in (
        (first, 1), (second, 1), (second, 2)))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/.spit-run-json-0123").touch()  # of a run that was killed

    def work(item: Input, say: Say) -> Document:
        with pytest.raises(ValueError, match=r"out: a run with other options is writing there; wait for it, or choose"):
            run([second], other)
        assert run([second], same) == ["01"]
        return worker(one, done)(item, say)

    assert answer_each([first], "Working", work, lambda _: None, False, one) == 0
    assert done == ["00"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["00.json", "01.json"]


@pytest.mark.parametrize("verb", ["tokenize", "explain"])
def test_sigterm_leaves_no_lock(verb: str, tmp_path: Path, photo: Callable[..., Path]) -> None:
    for index in range(40):
        photo(tmp_path / f"in/{index:02d}.png", 300, 300, seed=index)
    run = subprocess.Popen([sys.executable, "-m", "spit.cli", verb, str(tmp_path / "in"), "-o", str(tmp_path / "out"),
                            "--device", "cpu"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not [*tmp_path.glob("out/.spit-claim-*")]:
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    run.terminate()
    _, told = run.communicate(timeout=240)
    assert (run.returncode, told) == (130, "spit: stopped; the same command processes all images again\n")
    assert not [*tmp_path.glob("out/.*")]
    assert not (tmp_path / "out").exists() or [*(tmp_path / "out").iterdir()], "an empty folder is removed"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    inputs = images(tmp_path, 1)
    (tmp_path / "out").mkdir(mode=0o500)
    with Shared(inputs, "json", {}).claim(inputs[0], wait=False) as mine:
        assert mine


def test_links_in_a_circle_are_reported(tmp_path: Path, spit: Callable[..., Any], photo: Callable[..., Path]) -> None:
    photo(tmp_path / "in/a.png")
    (tmp_path / "in/loop.png").symlink_to(tmp_path / "in/loop.png")
    (tmp_path / "in/sub").symlink_to(tmp_path / "in")
    result = spit("tokenize", tmp_path / "in", "-o", tmp_path / "out", "--device", "cpu")
    assert result.code == 2
    assert "loop.png" in result.err
    assert "1 of 2 images failed" in result.err
    assert "tokenize" not in spit("tokenize", tmp_path / "in/loop.png", "-o", tmp_path / "out").error
