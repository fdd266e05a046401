import io
import logging
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from skimage.data import coffee

from spit.data.crops import central_square
from spit.data.images import load_image
from spit.data.photos import Centres, Photos, squash, to_device
from spit.errors import ImageError


def picture(width: int = 30, height: int = 20, seed: int = 0) -> Image.Image:
    """Smooth, so that a resize by other means gives nearly the same."""
    y, x = np.mgrid[:height, :width]
    waves = [128 + 100 * np.sin((x + 3 * seed) * (k + 1) / width + 2 * y / height) for k in range(3)]
    return Image.fromarray(np.stack(waves, axis=2).astype(np.uint8))


def encoded(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, width, height in (("dogs/a", 30, 20), ("cats/b", 20, 30), ("cats/deep/c", 20, 20)):
        path = tmp_path / "photos" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(width, height).save(path)
    return tmp_path / "photos"


@pytest.fixture
def shard(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str, **members: bytes) -> Path:
        with tarfile.open(tmp_path / name, "w") as archive:
            for member, data in members.items():
                entry = tarfile.TarInfo(member.replace("__", "/").replace("_", "."))
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return tmp_path / name

    return write


class TestFolders:
    def test_items(self, folder: Path) -> None:
        photos = Photos([folder], 16, labelled=True)
        assert (len(photos), photos.classes) == (3, ["cats", "dogs"])
        assert [photos.names(i) for i in range(3)] == [str(folder / f"{n}.png") for n in
                                                       ("cats/b", "cats/deep/c", "dogs/a")]
        items = [photos[i] for i in range(3)]
        assert [(tuple(image.shape), image.dtype) for image, _, _ in items] == [((3, 16, 16), torch.uint8)] * 3
        assert [aspect for _, aspect, _ in items] == [20 / 30, 1, 30 / 20]
        assert [label for _, _, label in items] == [0, 0, 1]

    def test_without_labels(self, folder: Path) -> None:
        photos = Photos([folder], 8)
        assert (photos.classes, photos[0][2]) == ([], -1)

    def test_parts_of_a_data_set_are_no_classes(self, folder: Path, tmp_path: Path) -> None:
        for part in ("train", "test"):
            shutil.copytree(folder, tmp_path / "set" / part)
        with pytest.raises(ImageError, match=r"got the folder of test and train; give .*set/test or .*set/train$"):
            Photos([tmp_path / "set"], 8, labelled=True)
        assert len(Photos([tmp_path / "set"], 8)) == 2 * len(Photos([folder], 8))
        part, whole = (Photos([one], 8, labelled=True) for one in (tmp_path / "set" / "test", folder))
        assert part.classes == whole.classes

    def test_the_classes_of_another(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "held/dogs").mkdir(parents=True)
        picture().save(tmp_path / "held/dogs/z.png")
        assert Photos([tmp_path / "held"], 8, True, classes=["cats", "dogs"])[0][2] == 1
        with pytest.raises(ImageError, match="expected one of the 1 classes birds … birds, got dogs"):
            Photos([tmp_path / "held"], 8, True, classes=["birds"])

    def test_errors(self, folder: Path, tmp_path: Path) -> None:
        with pytest.raises(ImageError, match=r"nowhere: expected a folder"):
            Photos([tmp_path / "nowhere"], 8)
        with pytest.raises(ValueError, match="expected a list of folders or shards"):
            Photos(str(folder), 8)
        picture().save(folder / "loose.png")
        with pytest.raises(ImageError, match=r"loose\.png has no class: expected .*CLASS/loose\.png "):
            Photos([folder], 8, labelled=True)

    def test_the_fingerprint_is_of_names_and_classes_not_of_where(self, folder: Path, tmp_path: Path) -> None:
        before = Photos([folder], 8, True).fingerprint()
        moved = folder.rename(tmp_path / "elsewhere")
        assert Photos([moved], 16, True).fingerprint() == before
        assert Photos([moved], 8).fingerprint() != before
        (moved / "dogs/a.png").rename(moved / "dogs/e.png")
        assert Photos([moved], 8, True).fingerprint() != before


class TestShards:
    def test_beside_folders(self, folder: Path, shard: Callable[..., Path]) -> None:
        path = shard("s.tar", birds__x_png=encoded(picture(40, 20)), k_png=encoded(picture()), k_cls=b"cats")
        photos = Photos([folder, path], 12, labelled=True)
        assert photos.classes == ["birds", "cats", "dogs"]
        assert [photos[i][2] for i in range(5)] == [1, 1, 2, 0, 1]
        assert photos[3][1] == 2
        assert photos.names(3) == f"{path}:birds/x.png"
        assert torch.equal(photos[4][0], photos[2][0])  # the same photo in a file and in a shard

    def test_numbers_are_labels(self, shard: Callable[..., Path], tmp_path: Path) -> None:
        data = encoded(picture())
        shard("n-0.tar", a_png=data, a_cls=b"7")
        shard("n-1.tar", a_png=data, a_cls=b"03")
        photos = Photos([f"{tmp_path}/n-{{0..1}}.tar"], 8, labelled=True)
        assert photos.classes == [str(i) for i in range(8)]
        assert [photos[0][2], photos[1][2]] == [7, 3]


class TestBadPhotos:
    @pytest.fixture
    def many(self, tmp_path: Path) -> Path:
        (tmp_path / "many").mkdir()
        for index in range(6):
            picture(seed=index).save(tmp_path / f"many/{index}.png")
        return tmp_path / "many"

    def test_the_next_one_stands_in(self, many: Path, caplog: pytest.LogCaptureFixture) -> None:
        whole = Photos([many], 8)
        expected = [whole[i][0] for i in range(6)]
        (many / "5.png").write_bytes((many / "5.png").read_bytes()[:60])
        photos = Photos([many], 8)
        with caplog.at_level(logging.WARNING, "spit"):
            assert torch.equal(photos[5][0], expected[0])
            assert torch.equal(photos[5][0], expected[0])
        assert torch.equal(photos[4][0], expected[4])
        assert len(caplog.records) == 1
        assert "5.png" in caplog.text

    def test_too_many(self, many: Path, caplog: pytest.LogCaptureFixture) -> None:
        for index in (2, 3):
            (many / f"{index}.png").write_bytes(b"no image")
        with pytest.raises(ImageError, match=r"2 of 6 photos cannot be read, more than 1%, .*2.png among them"):
            Photos([many], 8)[2]
        with pytest.raises(ImageError, match="2 of 6 photos cannot be read"):
            to_device(Photos([many], 8), "cpu", workers=1)

    def test_none_stands_in_where_photos_are_counted(self, many: Path, caplog: pytest.LogCaptureFixture) -> None:
        (many / "3.png").write_bytes(b"no image")
        image, _, label = Centres(Photos([many], 8))[3]
        assert (int(image.max()), label) == (0, -1)


class TestSquash:
    def test_is_the_image_resized(self, tmp_path: Path) -> None:
        image = picture(60, 36)
        expected = torch.from_numpy(np.array(image.resize((24, 24), Image.Resampling.BICUBIC))).movedim(-1, 0)
        for name in ("a.png", "a.jpg"):
            image.save(tmp_path / name, quality=95)
            got, aspect = squash(tmp_path / name, 24)
            assert aspect == 60 / 36
            assert (got.int() - expected.int()).abs().max() <= (1 if name == "a.png" else 8)

    @pytest.mark.parametrize(("side", "most"), [(128, 0.0), (24, 4.0)])
    def test_is_what_evaluation_sees_of_whole_photos(self, tmp_path: Path, side: int, most: float) -> None:
        Image.fromarray(coffee()[:, :420]).save(tmp_path / "cup.jpg", quality=95)  # 400 rows
        whole = Centres(Photos([tmp_path], side), crop=None)[0][0]
        assert torch.equal(whole, central_square(load_image(tmp_path / "cup.jpg"), side, None))
        gap = (squash(tmp_path / "cup.jpg", side)[0].float() - whole).abs().mean()
        assert gap <= most
        assert (gap == 0) == (most == 0)  # a JPEG of more than four times the side is decoded smaller

    def test_a_large_jpeg_is_decoded_smaller(self, tmp_path: Path) -> None:
        picture(1600, 800).save(tmp_path / "large.jpg", quality=95)
        got, aspect = squash(tmp_path / "large.jpg", 32)
        expected = np.array(picture(1600, 800).resize((32, 32), Image.Resampling.BICUBIC))
        assert aspect == 2
        assert (got.int() - torch.from_numpy(expected).movedim(-1, 0).int()).abs().max() <= 6

    def test_upright(self, tmp_path: Path) -> None:
        exif = Image.Exif()
        exif[0x0112] = 6
        picture(40, 20).save(tmp_path / "turned.jpg", exif=exif, quality=95)
        got, aspect = squash(tmp_path / "turned.jpg", 20)
        upright = Image.fromarray(load_image(tmp_path / "turned.jpg").movedim(0, -1).numpy())
        expected = torch.from_numpy(np.array(upright.resize((20, 20), Image.Resampling.BICUBIC))).movedim(-1, 0)
        assert aspect == 0.5
        assert (got.int() - expected.int()).abs().max() <= 2

    @pytest.mark.parametrize("mode", ["L", "RGBA", "CMYK", "P", "1", "I;16"])
    def test_any_mode(self, mode: str, tmp_path: Path) -> None:
        grey = picture().convert("L")
        image = Image.fromarray(np.array(grey).astype(np.uint16) * 257) if mode == "I;16" else grey.convert(mode)
        path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
        image.save(path)
        assert squash(path, 8)[0].shape == (3, 8, 8)


@pytest.mark.parametrize("workers", [0, 1])
def test_to_device(folder: Path, workers: int) -> None:
    photos = Photos([folder], 16, labelled=True)
    images, aspects, labels = to_device(photos, "cpu", workers)
    assert (images.dtype, aspects.dtype, labels.dtype) == (torch.uint8, torch.float32, torch.int64)
    for index in range(3):
        image, aspect, label = photos[index]
        assert torch.equal(images[index], image)
        assert aspects[index] == torch.tensor(aspect)
        assert labels[index] == label
