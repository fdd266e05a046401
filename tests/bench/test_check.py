from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from spit import kernels
from spit.bench import check_labels
from spit.bench.check import CHECKED
from spit.bench.photos import photo_batch, sample_photos
from spit.kernels import reference
from spit.options import declared
from spit.tokenizers import SuperpixelTokenizer, Tokenizer, VoronoiTokenizer

Choice = tuple[str, Any]  # an option and a word, or for other options whether it has its default


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    sizes = [(24, 32), (24, 32), (16, 16)]
    for index, (height, width) in enumerate(sizes):
        image = photo_batch(sample_photos(), 1, height, width, seed=index)[0]
        Image.fromarray(image.movedim(0, -1).numpy()).save(tmp_path / f"{index}.png")
    return sorted(tmp_path.iterdir())


def choices(kind: type[Tokenizer]) -> dict[str, set[Choice]]:
    """What each option can be, by the declarations of the options."""
    return {item.name: {(item.name, word) for word in spec.choices or (True, False)}
            for item, _, spec in declared(kind)}


def chosen(tokenizer: Tokenizer) -> set[Choice]:
    values = tokenizer.config()
    return {(item.name, values[item.name] if spec.choices else values[item.name] == item.default)
            for item, _, spec in declared(type(tokenizer))}


def missing(kind: type[Tokenizer], checked: tuple[Tokenizer, ...]) -> set[tuple[Choice, ...]]:
    """The choices, and the pairs of choices, that no tokenizer among the checked ones has."""
    own = [chosen(tokenizer) for tokenizer in checked if type(tokenizer) is kind]
    every = choices(kind)
    wanted = [(one,) for found in every.values() for one in found]
    wanted += [pair for first, second in combinations(every.values(), 2) for pair in product(first, second)]
    return {each for each in wanted if not any(found.issuperset(each) for found in own)}


@pytest.mark.parametrize("kind", [SuperpixelTokenizer, VoronoiTokenizer])
def test_every_choice_and_every_pair_of_choices_is_checked(kind: type[Tokenizer]) -> None:
    assert missing(kind, CHECKED) == set()


def test_a_new_choice_would_be_missed() -> None:
    assert (("self_loop", "none"),) in missing(SuperpixelTokenizer, CHECKED[:3])
    assert (("seed", False),) in missing(VoronoiTokenizer, (VoronoiTokenizer(),))
    apart = VoronoiTokenizer(9), VoronoiTokenizer(seed=1)
    assert (("cells", False), ("seed", False)) in missing(VoronoiTokenizer, apart)


def test_all_images_are_compared_in_all_batches(paths: list[Path]) -> None:
    checks = list(check_labels(paths, torch.device("cpu")))
    assert [check.batch for check in checks] == [1, 7, 64] * len(CHECKED)
    names = {check.tokenizer for check in checks}
    assert len(names) == len(CHECKED)
    assert {"superpixel", "superpixel, levels=5, max_tokens=100, self_loop=paper", "voronoi",
            "voronoi, cells=100, seed=1"} <= names
    assert all(check.same == check.images == 3 for check in checks)


def test_a_difference_is_counted(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    exact = reference.nearest_sites

    def wrong(*args: object) -> torch.Tensor:
        labels = exact(*args)  # type: ignore[arg-type]
        labels[0, 0, 0] += 1
        return labels

    monkeypatch.setattr(kernels.reference, "nearest_sites", wrong)
    monkeypatch.setattr("spit.bench.check.CHECKED", (VoronoiTokenizer(),))
    assert [check.same for check in check_labels(paths, torch.device("cpu"))] == [0, 1, 1]
