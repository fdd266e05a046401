"""Compiled models. Without CUDA, what would be recorded is run once, by the interpreter."""

import copy

import pytest
import torch
from torch import Tensor

import spit
from spit import kernels
from spit.compiled import (
    CompiledBackbone,
    CompiledModel,
    CompiledSteps,
    ReplayedInference,
    _prepare,
    lay_out,
    rounded_rows,
)
from spit.kernels.recording import STEP, step_of

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
FEW = 16
COMPILES = pytest.mark.filterwarnings("ignore")  # torch's, of torch's own parts


@pytest.fixture(scope="module")
def model() -> spit.SpitModel:
    torch.manual_seed(0)
    return spit.create_model("spit_tiny_16", num_classes=5, depth=2).eval()


@pytest.fixture(scope="module")
def images() -> Tensor:
    return torch.randint(0, 256, (3, 3, 24, 20), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> int:
    """Round to fewer rows, which the interpreter computes sooner."""
    monkeypatch.setattr("spit.compiled.step_of", lambda _: FEW)
    return FEW


@pytest.mark.parametrize("fill", ["zero", "image", "mean"])
def test_rows_in_excess_change_nothing(model: spit.SpitModel, images: Tensor, fill: str, few_rows: int) -> None:
    pytest.importorskip("triton", reason="no triton: pip install 'spit-vit[gpu]'")
    model, images = copy.deepcopy(model).to(DEVICE), images.to(DEVICE)
    model.extractor = spit.FeatureExtractor(normalization="imagenet", fill=fill)
    with torch.inference_mode():
        expected = model(images)
        partition = model.tokenizer(images)
        replayed = ReplayedInference(model, backend="eager")
        with kernels.backend("triton"):
            logits = replayed(images, partition)
    assert partition.offsets[-1] % few_rows  # rows are rounded up
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)
    if fill == "zero":  # weights that change in place are seen
        with torch.no_grad(), kernels.backend("triton"):
            model.head.linear.bias += 1
            torch.testing.assert_close(replayed(images, partition), expected + 1, rtol=1e-4, atol=1e-5)


def test_a_cpu_and_training_are_not_replayed(model: spit.SpitModel, images: Tensor) -> None:
    blocks = spit.images.image_blocks(images)
    partition = model.tokenizer(images)
    with torch.inference_mode():
        assert not ReplayedInference(model).serves(blocks, partition)


@COMPILES
def test_copies_are_not_compiled(model: spit.SpitModel) -> None:
    model = copy.deepcopy(model)
    model.compile(mode="reduce-overhead")
    assert isinstance(model.forward, CompiledModel)
    assert isinstance(model.backbone.forward, CompiledBackbone)
    for other in (copy.deepcopy(model), model.with_tokenizer("patch")):
        assert other.compiled is None
        assert not {"forward"} & (vars(other).keys() | vars(other.backbone).keys())


@COMPILES
def test_hooks_run_and_what_was_recorded_is_forgotten(model: spit.SpitModel, images: Tensor,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    model, called = copy.deepcopy(model), []
    model.compile(backend="eager")
    model.register_forward_hook(lambda *_: called.append("model"))
    model.backbone.register_forward_hook(lambda *_: called.append("backbone"))
    with torch.inference_mode():
        model(images)
    assert called == ["backbone", "model"]
    monkeypatch.setattr(model.compiled, "clear", lambda: called.append("clear"))
    model.reset_classifier(7)
    model.double()
    assert called[2:4] == ["clear", "clear"]


@pytest.mark.parametrize("count", [1, 253, 254, 255, 256, 510, 16_383, 16_384, 70_000, 131_000])
def test_images_in_excess_have_few_rows_but_some(count: int) -> None:
    total, images = rounded_rows(count)
    offsets, image_of, places = lay_out(torch.tensor([0, count - 1]), total, images)  # and one class token
    sizes = offsets.diff()
    assert total % step_of(count) == 0
    assert sizes.sum() == total
    assert sizes[0] == count
    assert torch.equal(image_of.bincount(minlength=images + 1), sizes)
    assert sorted([*places.tolist(), *offsets[:-1].tolist()]) == list(range(total))  # tokens and class tokens
    assert 1 <= sizes[1:].min() <= sizes[1:].max() <= STEP


@COMPILES
@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("of_images", [False, True])
def test_steps_of_training_are_those_of_a_plain_pass(model: spit.SpitModel, images: Tensor, of_images: bool) -> None:
    """What CUDA graphs are recorded of, run plainly: rows and images in excess change nothing."""
    model, images = copy.deepcopy(model).to(DEVICE), images.to(DEVICE)
    partition, features = model.tokenize(images)
    steps = CompiledSteps(model)
    steps._run = steps._forward
    if of_images:
        pytest.importorskip("triton", reason="no triton: pip install 'spit-vit[gpu]'")
        with kernels.backend("triton"):
            got = steps.of_images(images, partition)
    else:
        got = steps(features)
    expected = model.run(features)[1]
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    weights = [*model.embedder.parameters(), *model.backbone.parameters()]
    for one, other in zip(*(torch.autograd.grad((answer**3).sum(), weights) for answer in (got, expected)),
                          strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3 * float(other.abs().max()))
    assert not steps.serves(torch.device("cpu"))


@pytest.mark.parametrize("budget", [1, 10_000, None])
def test_a_recorded_step_keeps_a_budget_of_tokens(model: spit.SpitModel, images: Tensor, budget: int | None) -> None:
    pytest.importorskip("triton", reason="no triton: pip install 'spit-vit[gpu]'")
    model, images = copy.deepcopy(model).to(DEVICE), images.to(DEVICE)
    partition, features = model.tokenize(images)
    counts = [count if budget is None else min(count, budget) for count in partition.host_counts]
    rows, more = rounded_rows(sum(counts) + len(counts))
    with kernels.backend("triton"):
        options = (model.extractor, torch.float32, budget, len(features.values) + 3, rows, more)
        values, offsets, _, places = _prepare((images, partition.blocks[0], partition.offsets), options)
    assert offsets.diff()[: len(counts)].tolist() == [count + 1 for count in counts]
    assert len(values) == len(places) == rows - more - len(counts)
    assert values.isfinite().all()
    for own, given in zip(values[: sum(counts)].split(counts), features, strict=True):
        nearest = torch.cdist(own, given).min(1)
        assert nearest.values.max() < 1e-3  # each is a token of its image
        assert nearest.indices.diff().gt(0).all()  # in order, none twice


@CUDA
@COMPILES
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_replays_answer_as_plain_runs(model: spit.SpitModel, images: Tensor, dtype: torch.dtype) -> None:
    model, photos = copy.deepcopy(model).cuda(), images.cuda()
    with torch.inference_mode(), torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
        plain = [model(photos + shift) for shift in range(6)]
        model.compile()
        assert model.compiled is not None
        replayed = [model(photos + shift) for shift in range(6)]
        recorded = model(photos, record=("features",)).logits
        assert len(model.compiled.inference._recordings) >= 1
        assert torch.equal(recorded, replayed[0])
        for got, expected in zip(replayed, plain, strict=True):
            torch.testing.assert_close(got, expected, rtol=2e-2, atol=1e-2)


@CUDA
@COMPILES
def test_replays_follow_weights_and_heads(model: spit.SpitModel, images: Tensor) -> None:
    model, photos = copy.deepcopy(model).cuda(), images.cuda()
    model.compile()
    with torch.inference_mode():
        for _ in range(4):
            before = model(photos)
    with torch.no_grad():
        model.head.linear.bias += 1  # in place
        torch.testing.assert_close(model(photos), before + 1, rtol=1e-4, atol=1e-4)
        model.reset_classifier(7)
        assert model(photos).shape == (3, 7)
        assert model.half().float()(photos).shape == (3, 7)


@CUDA
@COMPILES
def test_a_step_of_training_by_cuda_graphs(model: spit.SpitModel, images: Tensor) -> None:
    photos, gradients = images.cuda(), []
    for mode in (None, "reduce-overhead"):
        twin = copy.deepcopy(model).cuda().train()
        if mode is not None:
            twin.compile(mode=mode)
        for _ in range(5):  # those after the third come from graphs
            twin.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                twin(photos).float().square().sum().backward()
        gradients.append([weight.grad.clone() for weight in twin.parameters()])
    for got, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(got, expected, rtol=5e-2, atol=5e-2 * float(expected.abs().max()))
