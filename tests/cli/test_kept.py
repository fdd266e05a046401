"""Maps of an earlier run of ``spit explain``, after a run with other methods or other options."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from PIL import Image

from spit.cli.claims import Shared
from spit.cli.inputs import find_inputs
from spit.cli.kept import kept_maps

REFUSED = "; choose another --output, or remove the earlier files"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def explain(spit: Callable[..., Any], save_tiny: Callable[..., Path], photo: Callable[..., Path],
            tmp_path: Path) -> Callable[..., Any]:
    """Explains ``cat.png`` into ``out`` by a small model."""
    path, model = photo(tmp_path / "cat.png"), save_tiny(num_classes=7)

    def run(method: str, *options: object, image: Path = path) -> Any:
        return spit("explain", image, "--model", model, "--size", 32, "-o", tmp_path / "out", "--device", "cpu",
                    "--method", method, *options)

    return run


def test_maps_of_other_methods_are_kept_over_three_runs(explain: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "kept" not in explain("token_rise", "--samples", 8).out
    file = out / "cat.token_rise.npy"
    rise, inode = file.read_bytes(), file.stat().st_ino
    second = explain("relevance")
    assert (second.code, second.err) == (0, "")
    assert "4 files for each image" in second.out
    assert second.out.endswith("\nMaps kept from earlier runs: token_rise\n")
    relevance = (out / "cat.relevance.npy").read_bytes()
    [document] = explain("flow", "--top", 2, "--json").json["images"]
    assert document == json.loads((out / "cat.explain.json").read_text())
    assert {*document["files"].values()} == {*contents(out)} - {"cat.explain.json"}
    assert contents(out).items() >= {"cat.token_rise.npy": rise, "cat.relevance.npy": relevance}.items()
    [about] = document["models"]
    assert about["maps"] == {name: f"cat.{name}.npy" for name in ("flow", "relevance", "token_rise")}
    assert about["of_class"] == ["relevance", "token_rise"]
    assert about["kept"] == ["relevance", "token_rise"]
    [made] = document["settings"]["models"].values()
    assert made["methods"]["token_rise"]["samples"] == 8
    fourth = explain("token_rise", "--samples", 9, "--json")
    assert fourth.err == (f"spit: {out}: replacing the files of 1 image, made with other options: "
                          "token_rise.samples was 8, is 9\n")
    [about] = fourth.json["images"][0]["models"]
    assert about["kept"] == ["flow", "relevance"], "its own map is written again"
    assert file.stat().st_ino != inode


@pytest.mark.parametrize(("options", "told"), [
    (("--target", 4), 'with other options: --target was not set, is "4 class 4"'),
    (("--whole",), "with other options: --whole was false, is true"),
])
def test_maps_of_other_options_are_not_removed(options: tuple[object, ...], told: str, explain: Callable[..., Any],
                                               tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert explain("random,relevance").code == 0
    before = contents(out)
    assert explain("relevance", *options).error == f"spit: {out}/cat.random.npy was made {told}{REFUSED}\n"
    assert contents(out) == before
    result = explain("relevance,random,flow", *options)  # replaces all of them
    assert result.code == 0
    assert f"replacing the files of 1 image, made {told}\n" in result.err
    assert "kept" not in result.out
    (out / "cat.relevance.npy").unlink()
    assert explain("random,flow").code == 0, "what is listed but gone cannot be lost"


def test_maps_of_another_image_are_not_removed(explain: Callable[..., Any], photo: Callable[..., Path],
                                               tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert explain("flow").code == 0
    copy = tmp_path / "copy/cat.png"
    copy.parent.mkdir()
    copy.write_bytes((tmp_path / "cat.png").read_bytes())
    result = explain("random", image=copy)
    assert (result.code, result.err) == (0, "")
    assert "kept from earlier runs: flow\n" in result.out
    photo(copy, seed=1)
    before = contents(out)
    assert explain("random", image=copy).error == (
        f"spit: {out}/cat.flow.npy was made from {copy}, which has changed since{REFUSED}\n")
    assert contents(out) == before
    copy.write_text("no image")
    assert "cat.png" in explain("random", image=copy).error
    assert contents(out) == before


def test_maps_of_several_models_are_kept(explain: Callable[..., Any], tmp_path: Path) -> None:
    out, other = tmp_path / "out", copytree(tmp_path / "tiny", tmp_path / "other")
    assert explain("flow", "--model", other).code == 0
    before = contents(out)
    [document] = explain("random", "--model", other, "--json").json["images"]
    assert {*document["files"].values()} == {*contents(out)} - {"cat.explain.json"}
    assert [part["maps"] for part in document["models"]] == [
        {method: f"cat.{name}.{method}.npy" for method in ("random", "flow")} for name in ("tiny", "other")]
    for name in ("cat.tiny.flow.npy", "cat.other.flow.npy"):
        assert (out / name).read_bytes() == before[name]
    assert explain("flow").error == (
        f'spit: {out}/cat.other.flow.npy was made with other options: --model was "other, tiny", is "tiny"{REFUSED}\n')


def test_workers_keep_maps(explain: Callable[..., Any], photo: Callable[..., Path], tmp_path: Path) -> None:
    for seed in range(4):
        photo(tmp_path / f"in/{seed}.png", seed=seed)
    assert explain("flow", image=tmp_path / "in").code == 0
    before = contents(tmp_path / "out")
    result = explain("random", "--workers", 2, "--json", image=tmp_path / "in")
    assert (result.code, result.err) == (0, "")
    assert [document["models"][0]["kept"] for document in result.json["images"]] == [["flow"]] * 4
    after = contents(tmp_path / "out")
    assert all(after[name] == data for name, data in before.items() if name.endswith(".npy"))


@pytest.mark.parametrize("change", [
    {"settings": None}, {"settings": []}, {"models": 3}, {"models": [3]}, {"models": [{"model": "a"}]},
    {"models": [{"model": "a", "maps": {"lime": "cat.lime.npy"}}]}])
def test_a_damaged_document(change: dict[str, Any], tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "cat.png")
    [item] = find_inputs([tmp_path / "cat.png"], tmp_path / "out")
    shared = Shared([item], "explain.json", {"verb": "explain", "models": {"a": {"methods": {}}}})
    document = item.write("explain.json", {"models": [], **shared.about_run(item)}, {"lime.npy": ("lime.npy", b"1")})
    (tmp_path / "out/cat.explain.json").write_text(json.dumps(document | change))
    with pytest.raises(ValueError, match=r"cat\.lime\.npy was made with unknown options; choose another --output"):
        kept_maps(shared, item, ["flow.npy"])
