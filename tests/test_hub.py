"""from_pretrained, save_pretrained and push_to_hub, on a folder that stands for the hub; torch.hub on this checkout."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import spit
from spit.hub import CARD, model_card

ROOT = Path(__file__).parents[1]


@pytest.fixture
def model() -> spit.SpitModel:
    return spit.create_model("spit_tiny_16", depth=1, num_classes=3, class_names=("a", "b", "c"))


def test_a_folder_round_trip_keeps_the_answers(model: spit.SpitModel, tmp_path: Path) -> None:
    folder = model.save_pretrained(tmp_path / "mine")
    again = spit.SpitModel.from_pretrained(folder)
    images = torch.rand(1, 3, 40, 40, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(again(images), model(images))
    assert again.config == model.config
    assert spit.SpitModel.from_pretrained(folder, num_classes=5).num_classes == 5
    card = (folder / CARD).read_text()
    assert "library_name: spit" in card
    assert "1 layers, width 192" in card
    assert "3 classes" in card


def test_a_card_of_yours_stays(model: spit.SpitModel, tmp_path: Path) -> None:
    folder = model.save_pretrained(tmp_path / "mine", card="about my data")
    model.save_pretrained(folder)
    assert (folder / CARD).read_text() == "about my data"
    assert "license: apache-2.0" in model_card(model, "mine", license="apache-2.0")


class LocalHub:
    """HfApi's part in an upload, with folders for repositories."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.token: str | None = None

    def __call__(self, token: str | None = None) -> "LocalHub":
        self.token = token
        return self

    def create_repo(self, repo: str, **options: Any) -> Any:
        (self.root / repo).mkdir(parents=True, exist_ok=options["exist_ok"])
        return SimpleNamespace(repo_id=repo)

    def file_exists(self, repo: str, name: str, revision: str | None = None) -> bool:
        return (self.root / repo / name).exists()

    def upload_folder(self, repo_id: str, folder_path: Path, ignore_patterns: list[str], delete_patterns: str,
                      **options: Any) -> str:
        target = self.root / repo_id
        for path in target.glob(delete_patterns):
            path.unlink()
        for path in folder_path.iterdir():
            if path.name not in ignore_patterns:
                shutil.copy(path, target)
        return f"https://hub/{repo_id}"


def test_an_upload_holds_one_model_and_a_card(model: spit.SpitModel, tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(huggingface_hub, "HfApi", LocalHub(tmp_path))
    assert model.push_to_hub("me/mine", token="secret") == "https://hub/me/mine"
    card = tmp_path / "me" / "mine" / CARD
    assert 'spit.load("me/mine")' in card.read_text()
    card.write_text("written by hand")
    with torch.no_grad():
        model.embedder.class_token += 1
    model.push_to_hub("me/mine")
    assert card.read_text() == "written by hand"
    names = sorted(path.name for path in card.parent.iterdir())
    assert len(names) == 3
    again = spit.SpitModel.from_pretrained(card.parent)
    assert torch.equal(again.embedder.class_token, model.embedder.class_token)


def test_a_revision_goes_to_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("spit.hub.load_model", lambda source: asked.append(source))
    spit.SpitModel.from_pretrained("me/mine", revision="v2")
    assert asked == ["me/mine@v2"]


def test_torch_hub() -> None:
    model = torch.hub.load(str(ROOT), "spit_tiny_16", source="local", num_classes=4)
    assert model.num_classes == 4
    assert torch.hub.load(str(ROOT), "predictor", source="local", device="cpu").name == "spit_tiny_16"
