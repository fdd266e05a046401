"""One runner: resuming by content, batches, warm-up, progress."""

import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from spit.errors import SpitError
from spit.evaluation.classification import AnswerCase, SquareCase
from spit.evaluation.runner import Case, Journal, Record, Runner, case_of
from spit.evaluation.samples import Sample, find_images
from spit.predictor import Predictor

CPU = torch.device("cpu")
HOLDER = """
import sys
from pathlib import Path
from spit.evaluation.runner import Journal

journal = Journal(Path(sys.argv[1]))
journal.add("a", [{"key": "1", "image": "a"}])
print("open", flush=True)
sys.stdin.read()
"""


class Lengths(Case):
    """The number of bytes of the truth, and a list of all samples that were measured."""

    name = "lengths"

    def __init__(self, unit: int = 1) -> None:
        self.unit = unit
        self.seen: list[str] = []

    def config(self) -> dict[str, Any]:
        return {"unit": self.unit}

    def measure(self, samples: Sequence[Sample], runner: Runner) -> Generator[list[Record]]:
        for sample in samples:
            self.seen.append(sample.name)
            yield [{"key": sample.key, "image": sample.name, "length": len(sample.truths[0].read_bytes()) * self.unit}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in "abc":
        (tmp_path / f"{name}.png").write_text(f"image {name}")
        (tmp_path / f"{name}.mask").write_text("mask" + name)
    return tmp_path


def samples(folder: Path) -> list[Sample]:
    return [Sample(path.stem, path, (path.with_suffix(".mask"),)) for path in sorted(folder.glob("*.png"))]


def run(folder: Path, case: Lengths) -> tuple[list[int], Runner]:
    with Runner(folder / "images.jsonl") as runner:
        return [record["length"] for record in runner.answers(case, samples(folder))], runner


def test_a_first_run_has_no_earlier_answers(folder: Path) -> None:
    _, runner = run(folder, Lengths())
    assert (runner.done, runner.resumed) == (3, 0)
    case = Lengths()
    _, runner = run(folder, case)
    assert (case.seen, runner.done, runner.resumed) == ([], 3, 3)


def test_a_replaced_mask_is_measured_again(folder: Path) -> None:
    """The same name, path and size on disk; other bytes."""
    run(folder, Lengths())
    (folder / "b.mask").write_text("another mask")
    case = Lengths()
    assert run(folder, case)[0] == [5, 12, 5]
    assert case.seen == ["b"]


def test_a_replaced_image_is_measured_again(folder: Path) -> None:
    run(folder, Lengths())
    (folder / "b.png").write_text("IMAGE b")
    case = Lengths()
    run(folder, case)
    assert case.seen == ["b"]


def test_a_renamed_file_keeps_its_answer(folder: Path) -> None:
    run(folder, Lengths())
    for suffix in (".png", ".mask"):
        (folder / f"b{suffix}").rename(folder / f"z{suffix}")
    case = Lengths()
    _, runner = run(folder, case)
    assert (case.seen, runner.resumed) == ([], 3)


def test_equal_images_both_count_and_are_measured_once(folder: Path) -> None:
    for suffix in (".png", ".mask"):
        (folder / f"d{suffix}").write_bytes((folder / f"a{suffix}").read_bytes())
    case, steps = Lengths(), []
    with Runner(folder / "images.jsonl", lambda *step: steps.append(step)) as runner:
        assert len(runner.answers(case, samples(folder))) == 4
    assert len(case.seen) == 3
    assert (runner.done, runner.resumed) == (4, 0)
    assert steps[-1] == ("lengths", 4, 4)


def test_another_case_is_measured(folder: Path) -> None:
    run(folder, Lengths())
    case = Lengths(unit=2)
    assert run(folder, case)[0] == [10, 10, 10]
    assert len(case.seen) == 3


def test_a_journal_of_an_older_version(folder: Path) -> None:
    (folder / "images.jsonl").write_text('{"case": "x", "image": "a", "length": 9}\n')
    assert run(folder, Lengths())[0] == [5, 5, 5]
    (folder / "images.jsonl").write_text("no journal\n")
    with pytest.raises(ValueError, match="choose another --output or remove it"):
        run(folder, Lengths())


def test_a_stream_measures_no_more_than_is_taken(folder: Path) -> None:
    case = Lengths()
    with Runner() as runner:
        stream = runner.stream(case, samples(folder), counted=False)
        assert next(stream)["image"] == "a"
        stream.close()
    assert (case.seen, runner.done) == (["a"], 0)


def test_reading_ahead_changes_nothing(labelled: Path, predictor: Any) -> None:
    found = find_images(labelled)[:7]
    case: SquareCase = AnswerCase(predictor())
    plain, ahead = (list(Runner(batch=2).read(found, case.read, torch.device(kind))) for kind in ("cpu", "cuda"))
    assert [[sample.name for sample in chunk] for chunk, _ in plain] == [
        [sample.name for sample in chunk] for chunk, _ in ahead]
    assert [len(chunk) for chunk, _ in plain] == [2, 2, 2, 1]
    for (_, one), (_, other) in zip(plain, ahead, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_first_call_is_not_timed(labelled: Path, predictor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    plain = AnswerCase.run
    monkeypatch.setattr(AnswerCase, "run", lambda self, batch, runner: calls.append(len(batch)) or plain(
        self, batch, runner))
    with Runner(batch=4) as runner:
        records = runner.answers(AnswerCase(predictor()), find_images(labelled)[:6])
    assert calls == [4, 4, 2]
    assert all(record["seconds"] > 0 for record in records)


def test_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="fp32, bf16, fp16, got 'fp8'"):
        Runner(precision="fp8")
    with pytest.raises(ValueError, match="use fp32 or bf16 on a CPU"):
        Runner(precision="fp16").autocast(CPU)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    with pytest.raises(ValueError, match="bf16 needs a GPU, or a CPU with AVX512_BF16"):
        Runner(precision="bf16").autocast(CPU)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    with Runner(precision="bf16").autocast(CPU):
        assert torch.is_autocast_enabled("cpu")
    with Runner(precision="fp32").autocast(CPU):
        assert not torch.is_autocast_enabled("cpu")


def test_a_case_has_weights_config_size_and_device(predictor: Any) -> None:
    one: Predictor = predictor()
    case = AnswerCase(one)
    others = [AnswerCase(one, True), AnswerCase(predictor(seed=1)), AnswerCase(one.with_tokenizer("patch", size=8)),
              AnswerCase(predictor(square=40))]
    assert all(other.config() != case.config() for other in others)
    assert AnswerCase(predictor()).config() == case.config()


def test_records_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "images.jsonl"
    with Journal(path) as journal:
        journal.add("a", [{"key": "1", "image": "a", "top": [3]}, {"key": "2", "image": "b", "top": [4]}])
        journal.add("b", [{"key": "1", "image": "a", "top": [5]}])
    with Journal(path) as journal:
        assert {key: record["top"] for key, record in journal.records("a").items()} == {"1": [3], "2": [4]}
        assert journal.records("b")["1"]["top"] == [5]
        assert journal.records("c") == {}


def test_a_journal_in_memory() -> None:
    with Journal(None) as journal:
        journal.add("a", [{"key": "1", "image": "a"}])
        assert list(journal.records("a")) == ["1"]


@pytest.mark.parametrize("cut", range(1, 22))
def test_a_line_cut_short_is_dropped_wherever(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "images.jsonl"
    with Journal(path) as journal:
        journal.add("a", [{"key": "1", "image": "a"}])
        journal.add("a", [{"key": "2", "image": "b"}])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with Journal(path) as journal:
        assert list(journal.records("a")) == ["1"]
        journal.add("a", [{"key": "2", "image": "b"}])
    assert path.read_bytes() == whole


def test_one_run_at_a_time_has_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "images.jsonl"
    with Journal(path) as journal:
        journal.add("a", [{"key": "1", "image": "a"}])
        with pytest.raises(SpitError, match=r"images\.jsonl: another evaluation is writing there; wait for it"):
            Runner(path)
        with Journal(tmp_path / "other.jsonl"), Journal(None):
            pass
        journal.add("a", [{"key": "2", "image": "b"}])
    with Journal(path) as journal:
        assert list(journal.records("a")) == ["1", "2"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["images.jsonl", "other.jsonl"]


def test_the_lock_of_another_process_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "images.jsonl"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(SpitError, match="another evaluation"):
            Journal(path)
        holder.kill()
    with Journal(path) as journal:
        assert list(journal.records("a")) == ["1"]


@pytest.mark.parametrize("line", ["no json", "[]", '{"image": "1"}'])
def test_another_file_is_refused_and_left_alone(tmp_path: Path, line: str) -> None:
    path = tmp_path / "images.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ValueError, match="line 1; choose another"):
        Journal(path)
    assert path.read_text() == line + "\n"
    assert list(tmp_path.iterdir()) == [path], "the lock is released"


def test_a_case_is_all_that_matters() -> None:
    assert case_of(size=1, model="a") == case_of(model="a", size=1) != case_of(size=2, model="a")


def test_answers_of_an_earlier_run_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "images.jsonl"
    with Journal(path) as journal:
        journal.add("a", [{"key": "1", "image": "a"}])
        assert journal.earlier == {}
    with Journal(path) as journal:
        journal.add("a", [{"key": "2", "image": "b"}])
        assert journal.earlier == {"a": frozenset({"1"})}


def test_lines_without_a_content_key_are_not_used(tmp_path: Path) -> None:
    """Older versions knew images by their names."""
    path = tmp_path / "images.jsonl"
    path.write_text('{"case": "a", "image": "cat.jpg", "top": [3]}\n')
    with Journal(path) as journal:
        assert journal.records("a") == {}
        journal.add("a", [{"key": "1", "image": "cat.jpg", "top": [4]}])
    assert len(path.read_text().splitlines()) == 2
