from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from spit.errors import ImageError
from spit.evaluation.superpixels.data import find_samples, read_sample, read_truths

TRUTH = np.array([[1, 1, 2], [1, 2, 2]])
COMPACT = [[0, 0, 1], [0, 1, 1]]


def write_mat(path: Path, truths: list[np.ndarray]) -> None:
    """As BSDS500 has them: a row of cells, a struct in each."""
    cells = np.empty((1, len(truths)), object)
    for index, truth in enumerate(truths):
        cells[0, index] = {"Segmentation": truth.astype(np.uint16), "Boundaries": np.zeros_like(truth, np.uint8)}
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {"groundTruth": cells})


def write_image(path: Path, size: tuple[int, int] = (3, 2)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, "red").save(path)


def test_bsds_layout(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_image(tmp_path / f"images/test/{name}.jpg")
        write_mat(tmp_path / f"groundTruth/test/{name}.mat", [TRUTH, TRUTH.max() - TRUTH])
    samples = find_samples(tmp_path)
    assert [sample.name for sample in samples] == ["test/a", "test/b"]
    image, truths = read_sample(samples[0])
    assert (image.shape, image.dtype) == ((2, 3, 3), np.uint8)
    assert [truth.tolist() for truth in truths] == [COMPACT, (1 - np.array(COMPACT)).tolist()]


def test_label_maps_of_every_kind(tmp_path: Path) -> None:
    grey, deep, palette, color, array, packed = (tmp_path / name for name in (
        "g.png", "d.png", "p.png", "c.png", "a.npy", "z.npz"))
    Image.fromarray(TRUTH.astype(np.uint8)).save(grey)
    Image.fromarray((TRUTH * 300).astype(np.uint16)).save(deep)
    indexed = Image.fromarray(TRUTH.astype(np.uint8), "L").convert("P")
    indexed.putpalette([0] * 768)  # all black: only the index tells
    indexed.save(palette)
    Image.fromarray(np.stack([TRUTH * 0, TRUTH, TRUTH * 0], axis=2).astype(np.uint8)).save(color)
    np.save(array, TRUTH)
    np.savez(packed, labels=TRUTH)
    for path in (grey, deep, palette, color, array, packed):
        assert [truth.tolist() for truth in read_truths(path)] == [COMPACT], path


def test_sbd_layout(tmp_path: Path) -> None:
    """Each connected piece of a class is a segment; -1, unknown, is one too; other kinds of labels are left alone."""
    write_image(tmp_path / "images/6000315.jpg")
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels/6000315.regions.txt").write_text("5 -1 5\n5 5 -1\n")
    for kind in ("surfaces", "layers"):
        (tmp_path / f"labels/6000315.{kind}.txt").write_text("1 1 1\n1 1 1\n")
    (tmp_path / "horizons.txt").write_text("6000315 120\n")
    (sample,) = find_samples(tmp_path)
    assert [path.name for path in sample.truths] == ["6000315.regions.txt"]
    _, [truth] = read_sample(sample)
    assert truth.tolist() == [[0, 1, 2], [0, 0, 3]]


@pytest.mark.parametrize(("text", "told"), [
    ("1 2\n3\n", "number of columns changed"), ("1 2\n3 sky\n", "could not convert string 'sky'"),
    ("1.5 2\n", "could not convert string '1.5'"), ("\n", "an empty file"), ("1 2\n3 ä\n", "ascii"),
])
def test_damaged_sbd_files(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.regions.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ImageError, match=rf"a\.regions\.txt: expected a label map .*{told}") as error:
        read_truths(path)
    assert "\n" not in str(error.value)


def test_several_maps_in_order_of_their_numbers_and_no_other_image_s(tmp_path: Path) -> None:
    write_image(tmp_path / "images/cat.png")
    (tmp_path / "labels").mkdir()
    for name in ("cat_10", "cat_2", "cat", "cats", "cat_a", "bobcat_1"):
        np.save(tmp_path / f"labels/{name}.npy", TRUTH)
    (sample,) = find_samples(tmp_path)
    assert [path.stem for path in sample.truths] == ["cat", "cat_2", "cat_10"]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="nowhere: expected a folder with images/"):
        find_samples(tmp_path / "nowhere")
    write_image(tmp_path / "images/cat.png")
    with pytest.raises(ImageError, match="found no groundTruth/ or labels/"):
        find_samples(tmp_path)
    (tmp_path / "labels").mkdir()
    with pytest.raises(ImageError, match=r"cat\.png: expected its label map at .*labels/cat"):
        find_samples(tmp_path)


def test_another_size(tmp_path: Path) -> None:
    write_image(tmp_path / "images/cat.png", (4, 4))
    (tmp_path / "labels").mkdir()
    np.save(tmp_path / "labels/cat.npy", TRUTH)
    with pytest.raises(ImageError, match=r"cat\.npy: expected .* upright image, \(4, 4\), got \(2, 3\)"):
        read_sample(find_samples(tmp_path)[0])


@pytest.mark.parametrize("name", ["a.mat", "a.png", "a.npy", "a.npz", "a.txt"])
def test_damaged_files(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"damaged")
    with pytest.raises(ImageError, match=f"{name}: expected a label map"):
        read_truths(tmp_path / name)


def test_other_content(tmp_path: Path) -> None:
    savemat(tmp_path / "a.mat", {"other": TRUTH})
    np.save(tmp_path / "floats.npy", TRUTH / 2)
    np.save(tmp_path / "object.npy", np.array([{}], object))
    for name in ("a.mat", "floats.npy", "object.npy"):
        with pytest.raises(ImageError, match=f"{name}: expected a label map"):
            read_truths(tmp_path / name)


@pytest.mark.shared
def test_bsds500_itself(shared_folder: Callable[[str], Path]) -> None:
    samples = find_samples(shared_folder("data/bsds500"))
    assert len(samples) == 200
    image, truths = read_sample(samples[0])
    assert sorted(image.shape) == [3, 321, 481]
    assert 4 <= len(truths) <= 9
