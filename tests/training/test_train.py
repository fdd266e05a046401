from collections.abc import Callable
from pathlib import Path

import pytest

from spit.training import TrainingError
from spit.training.recipe import Recipe
from spit.training.train import claimed, prepare


def test_a_run_s_folder(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    document = recipe().to_dict()
    assert prepare(tmp_path, document) is None
    assert prepare(tmp_path, recipe("optimization.lr=0.5").to_dict()) is None  # nothing had begun: a failed start
    assert prepare(tmp_path, document) is None
    (tmp_path / "checkpoints").mkdir()
    assert prepare(tmp_path, recipe("run.log=9").to_dict()) is None  # going on, speaking less often
    with pytest.raises(TrainingError, match=r"holds a run of another recipe: optimization\.lr was 0\.01, is 0\.5"):
        prepare(tmp_path, recipe("optimization.lr=0.5").to_dict())
    (tmp_path / "result.json").write_text('{"steps": 3}')
    assert prepare(tmp_path, recipe("run.log=9").to_dict()) == {"steps": 3}


def test_beginning_anew(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    assert prepare(tmp_path, recipe().to_dict(), fresh=True) is None
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(TrainingError, match=r"holds a run already .*leave out --fresh to resume it"):
        prepare(tmp_path, recipe().to_dict(), fresh=True)
    assert prepare(tmp_path, recipe("optimization.lr=0.5").to_dict(), fresh=True, force=True) is None
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".toml") == ["mine.txt", "recipe.json"]


@pytest.mark.parametrize("force", [False, True])
def test_what_is_somebody_else_s(recipe: Callable[..., Recipe], tmp_path: Path, force: bool) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(TrainingError, match="holds model, but no run of spit; choose another folder"):
        prepare(tmp_path, recipe().to_dict(), fresh=force, force=force)
    assert (tmp_path / "model").is_dir()


def test_a_claim(tmp_path: Path) -> None:
    with claimed(tmp_path / "new"):
        assert (tmp_path / "new").is_dir()
    with claimed(tmp_path / "new"):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match="expected a folder for the run, got the file"), claimed(tmp_path / "file"):
        pass
