import inspect
from typing import Any

import pytest
import torch

from spit.cli.options import TokenizerOptions, choose_device, command
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, VoronoiTokenizer


def test_the_default_is_the_librarys() -> None:
    assert TokenizerOptions().build() == SuperpixelTokenizer()
    assert TokenizerOptions(tokenizer="patch").build() == PatchTokenizer()
    assert TokenizerOptions(tokenizer="voronoi").build() == VoronoiTokenizer()
    assert not TokenizerOptions().anything


def test_every_option_arrives() -> None:
    options = TokenizerOptions(levels=3, compactness=0.1, merge_threshold=0.2, max_tokens=50, features="published",
                               similarity="euclidean", self_loop="none")
    expected = SuperpixelTokenizer(levels=3, compactness=0.1, merge_threshold=0.2, max_tokens=50,
                                   features="published", similarity="euclidean", self_loop="none")
    assert options.build() == expected
    assert TokenizerOptions(tokenizer="patch", patch_size=8).build() == PatchTokenizer(8)
    assert TokenizerOptions(tokenizer="voronoi", cells=9, seed=4).build() == VoronoiTokenizer(9, seed=4)


def test_zero_is_an_option_like_any_other() -> None:
    with pytest.raises(ValueError, match="levels of at least 1"):
        TokenizerOptions(levels=0).build()


def test_a_models_own_options_stand_unless_told() -> None:
    base = {"size": 8}
    assert TokenizerOptions().build("patch", base) == PatchTokenizer(8)
    assert TokenizerOptions(patch_size=4).build("patch", base) == PatchTokenizer(4)
    assert TokenizerOptions(tokenizer="superpixel").build("patch", base) == SuperpixelTokenizer()


@pytest.mark.parametrize(("options", "told"), [
    (TokenizerOptions(patch_size=8), "--patch-size belongs to --tokenizer patch, not to superpixel"),
    (TokenizerOptions(tokenizer="patch", levels=2), "--levels belongs to --tokenizer superpixel, not to patch"),
    (TokenizerOptions(tokenizer="patch", seed=0), "--seed belongs to --tokenizer voronoi, not to patch"),
    (TokenizerOptions(tokenizer="pach"), "did you mean 'patch'"),
    (TokenizerOptions(compactness=2), "compactness in"),
])
def test_refusals(options: TokenizerOptions, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        options.build()


def test_groups_become_options_of_their_own() -> None:
    seen: list[Any] = []

    def verb(tokenizer: TokenizerOptions, count: int = 1) -> None:
        seen.append((tokenizer, count))

    run = command(verb)
    parameters = inspect.signature(run).parameters
    assert "tokenizer" in parameters, "the group's own field of that name"
    assert {"levels", "seed", "count"} <= set(parameters)
    run(**{name: None for name in parameters if name != "count"} | {"levels": 2, "count": 3})
    assert seen == [(TokenizerOptions(levels=2), 3)]


def test_devices() -> None:
    assert choose_device("cpu") == choose_device("auto") == "cpu"
    with pytest.raises(ValueError, match="cpu, cuda or auto"):
        choose_device("tpu")


def test_cuda_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (choose_device("cuda:0"), choose_device("auto")) == ("cuda:0", "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="no CUDA device"):
        choose_device("cuda:0")
