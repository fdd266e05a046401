import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

import spit
from interop.test_timm import vit
from seams.plain import PlainSeam, PlainViT
from spit import kernels
from spit.config import ModelConfig
from spit.errors import WeightsError
from spit.interop.timm import from_timm
from spit.model import Output, SpitModel
from spit.partition import Partition
from spit.seams.seam import SEAMS
from spit.tokens import Tokens
from spit.training.augment import AugmentConfig, Draw, draw, fused
from spit.training.batches import Batch
from spit.training.distill import (
    Distillation,
    DistillConfig,
    Pooling,
    _divergence,
    _resized,
    position_mass,
    student_of,
)

PAPER = {"levels": 2, "compactness": 0.0, "self_loop": "clipped"}


def made(parent: SpitModel, tokenizer: str = "superpixel", options: Mapping[str, Any] = PAPER,
         **others: Any) -> SpitModel:
    return student_of(parent, {"tokenizer": tokenizer, "tokenizer_options": options, **others})


@pytest.fixture
def parent() -> SpitModel:
    """A ViT of 4 × 4 patches of 4 pixels, with random weights."""
    tensors = vit(width=48, patch=4, grid=4, classes=5)
    tensors["norm.weight"] += 1
    tensors["head.weight"] *= 10  # so that classes differ
    return from_timm(tensors, heads=3)


@pytest.fixture
def images(photo: Callable[[str, int], Tensor]) -> Tensor:
    return torch.stack([photo("coffee", 16), photo("astronaut", 16)])


def batch_of(images: Tensor, cutmix: float = 0.0) -> Batch:
    drawn: Draw = draw(AugmentConfig(cutmix=cutmix), len(images), torch.Generator().manual_seed(3))
    return Batch(images, torch.ones(len(images)), torch.full((len(images),), -1), drawn)


def test_a_student_has_the_parents_weights(parent: SpitModel) -> None:
    student = made(parent, token_budget=7, drop_path=0.1)
    assert (student.config.tokenizer, student.config.tokenizer_options) == ("superpixel", PAPER)
    assert (student.config.token_budget, student.config.drop_path, student.config.gradients) == (7, 0.1, True)
    assert (student.config.position_bins, student.config.position_sigma) == (16, 0.025)
    assert (student.config.normalization, student.config.resolution) == ("imagenet", 4)
    ours, theirs = student.state_dict(), parent.state_dict()
    assert ours.keys() == theirs.keys()
    for name in ours.keys() - {"embedder.projection.weight"}:
        assert torch.equal(ours[name], theirs[name])
        assert ours[name].data_ptr() != theirs[name].data_ptr()


@pytest.mark.parametrize("gradients", [True, False])
def test_gamma_of_the_student(parent: SpitModel, images: Tensor, gradients: bool) -> None:
    """Colours as they were, positions resampled, gradients not yet."""
    student = made(parent, gradients=gradients)
    weight, known = student.embedder.projection.weight, parent.embedder.projection.weight
    assert torch.equal(weight[:, :48], known[:, :48])
    assert weight.shape[1] == 48 + 256 * (1 + gradients)
    assert not weight[:, 48 + 256 :].any()
    features = student.extractor(images, parent.tokenizer(images)).values
    wanted = parent.extractor(images, parent.tokenizer(images)).values
    assert torch.equal(features[:, :48], wanted[:, :48])


def test_positions_of_the_student(images: Tensor) -> None:
    """As many cells as bins: the parent's table itself, and on its own patches what it meant."""
    tensors = vit(width=48, patch=1, grid=16, classes=5)
    y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    slopes = torch.linspace(-1, 1, 48)
    tensors["pos_embed"][0, 1:] = 8 + (y * slopes[0] + x).flatten()[:, None] * slopes / 8
    parent = from_timm(tensors, heads=3)
    student = made(parent, "patch", {"size": 16}, gradients=False)
    weight = student.embedder.projection.weight[:, 3:]
    assert torch.allclose(weight.T, tensors["pos_embed"][0, 1:] / position_mass(student.config), rtol=1e-5)
    large = images.repeat_interleave(16, -1).repeat_interleave(16, -2)  # 256²: a patch has 16 × 16 pixels
    partition = student.tokenizer(large)
    answer = student.embedder.projection(student.extractor(large, partition).values)
    wanted = parent.embedder.projection(parent.extractor(large, partition).values)
    assert (answer - wanted).abs().max() < 0.03 * 8
    masses = student.extractor(large, partition).values[:, 3:].sum(1)
    assert masses.mean() == pytest.approx(position_mass(student.config), rel=0.02)


@pytest.mark.parametrize("options", [
    {"position_sigma": 0.0, "position_bins": 4}, {"position_sigma": 0.0}, {"position_sigma": 0.05},
    {"position_sigma": 0.1, "position_bins": 8}])
def test_positions_weigh_the_same_whatever_the_histogram(parent: SpitModel, options: dict[str, Any]) -> None:
    """A position embedding that is the same everywhere adds the same to each token of the student."""
    weight = parent.embedder.projection.weight
    weight.data[:, 48:] = 2 * weight.data[:, 48 : 48 + 1]
    student = made(parent, gradients=False, **options)
    positions = student.embedder.projection.weight[:, 48:]
    seen = kernels.position_histogram(torch.zeros(1, 224, 224, dtype=torch.int32), torch.tensor([0, 1]),
                                      student.config.position_bins, student.config.position_sigma).flatten()
    torch.testing.assert_close(positions @ seen, weight[:, 48], rtol=5e-3, atol=1e-4)


def test_a_student_with_the_parents_own_positions(parent: SpitModel) -> None:
    """Bins and σ of the ViT: γ is the parent's, to the last bit."""
    student = made(parent, gradients=False, position_sigma=0.0, position_bins=4)
    assert torch.equal(student.embedder.projection.weight, parent.embedder.projection.weight)


def test_a_parent_that_spit_made(images: Tensor) -> None:
    """It has the student's own features: γ stays as it is."""
    config = ModelConfig(tokenizer="patch", resolution=4, width=48, depth=1, heads=3, num_classes=5)
    parent = SpitModel(config).eval()
    student = made(parent)
    assert torch.allclose(student.embedder.projection.weight, parent.embedder.projection.weight, atol=1e-7)
    plain = made(parent, gradients=False).embedder.projection.weight
    assert torch.equal(plain, student.embedder.projection.weight[:, : 48 + 256])
    assert Distillation(student, parent, DistillConfig()).patch == 16  # the tokenizer's default
    patches = student.with_tokenizer("patch").eval()
    assert torch.allclose(patches(images), parent(images), atol=1e-5)


@pytest.mark.parametrize("normalization", ["none", "contrast"])
def test_a_student_with_other_colours(parent: SpitModel, images: Tensor, normalization: str) -> None:
    """Between two affine normalisations γ answers as before; the contrast curve is fitted by a line."""
    student = made(parent, normalization=normalization, fill="image")
    answer, wanted = (model.with_tokenizer("patch", size=4).eval()(images) for model in (student, made(parent)))
    assert torch.allclose(answer, wanted, atol=1e-4) == (normalization == "none")
    assert (answer - wanted).norm() < 0.5 * wanted.norm()


def test_a_student_with_finer_patches_starts_as_its_parent(parent: SpitModel, images: Tensor) -> None:
    """On the parent's own patches tokens are the same; positions are those of the coarser student."""
    coarse, fine = (made(parent, "patch", {"size": 4}, resolution=side) for side in (4, 9))
    assert fine.embedder.projection.in_features == 3 * 81 + 2 * 256
    torch.testing.assert_close(fine.eval()(images), coarse.eval()(images), rtol=1e-3, atol=1e-4)


def test_a_student_with_layer_scale_starts_as_its_parent(parent: SpitModel, images: Tensor) -> None:
    student, plain = made(parent, layer_scale=1.0), made(parent)
    assert torch.equal(student.eval()(images), plain.eval()(images))


def test_weights_of_gradients_are_those_of_one_contrast() -> None:
    config = ModelConfig(tokenizer="patch", resolution=4, width=48, depth=1, heads=3, num_classes=5)
    student = made(SpitModel(config).eval(), gradient_contrast=27.8)
    assert not student.embedder.projection.weight[:, 48 + 256 :].any()


def test_other_features_are_refused(parent: SpitModel) -> None:
    with pytest.raises(WeightsError, match="features interpolating to retrofit, got interpolating and published"):
        made(parent, "patch", {"size": 4}, extractor="published")


def test_a_parent_without_patches(parent: SpitModel) -> None:
    student = made(parent, "voronoi", {"cells": 4})
    words = "expected a parent with square patches, got one with voronoi tokens; load a ViT with spit.from_timm"
    with pytest.raises(WeightsError, match=words):
        made(student)
    with pytest.raises(WeightsError, match=words):
        Distillation(student, student, DistillConfig())


def dense_means(answer: Output, truth: Tokens, partition: Partition) -> Tensor:
    """The parent's class tokens, and its others painted to pixels and averaged over each region, as rows."""
    dense = [values[1:][labels.long()] for values, labels in zip(truth, partition.blocks[0], strict=True)]
    return torch.cat([row for values, pixels, labels in zip(truth, dense, answer.partition.blocks[0], strict=True)
                      for row in (values[:1], *(pixels[labels == region].mean(0, keepdim=True)
                                                for region in range(int(labels.max()) + 1)))])


def targets(pooling: Pooling, tokens: Tokens) -> Tensor:
    return pooling.products(tokens.values)[pooling.image, pooling.place]


LAST = {"features": (-1,)}


@pytest.mark.parametrize("tokenizer", ["superpixel", "voronoi"])
def test_pooling(parent: SpitModel, images: Tensor, tokenizer: str) -> None:
    options: Mapping[str, Any] = PAPER if tokenizer == "superpixel" else {"cells": 9}
    student = made(parent, tokenizer, options, token_budget=6)
    with torch.no_grad():
        truth = parent(images, record=LAST)
        answer = student.eval()(images, record=())
        dropped = student.train()(images, record=())
    tokens = truth.features[parent.config.depth - 1]
    wanted = dense_means(answer, tokens, truth.partition)
    assert answer.kept is None
    assert answer.partition.counts.min() > 6
    for most in (None, 6):  # a budget bounds what was kept, and here nothing was dropped
        assert torch.allclose(targets(Pooling(answer, 4, most), tokens), wanted, atol=1e-5)
    assert dropped.kept is not None
    assert dropped.tokens.counts.tolist() == [6, 6]
    kept = torch.cat([torch.cat([mask.new_ones(1), mask]) for mask in dropped.kept.split(
        answer.partition.counts.tolist())])
    for most in (None, 6, 8):
        assert torch.allclose(targets(Pooling(dropped, 4, most), tokens), wanted[kept], atol=1e-5)


def test_a_patch_is_its_own_mean(parent: SpitModel, images: Tensor) -> None:
    truth = parent(images, record=LAST)
    tokens = truth.features[parent.config.depth - 1]
    pooling = Pooling(truth, 4, None)
    assert torch.allclose(targets(pooling, tokens), tokens.values, atol=1e-6)
    assert pooling.missed(tokens, tokens).item() == pytest.approx(0, abs=1e-10)


def test_what_tokens_miss_by_hand(parent: SpitModel, images: Tensor) -> None:
    """Two images of 16 patches: a class token that is off weighs as much as all regions of its image."""
    truth = parent(images, record=LAST)
    tokens = truth.features[parent.config.depth - 1]
    off = tokens.values.std(1, keepdim=True)
    off[[0, 17]] *= 2
    pooling = Pooling(truth, 4, None)
    assert pooling.missed(tokens.replace(tokens.values + off), tokens).item() == pytest.approx(1 + 4, rel=1e-3)
    off[17:] = 0
    assert pooling.missed(tokens.replace(tokens.values + off), tokens).item() == pytest.approx((1 + 4) / 2, rel=1e-3)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # torch's own tracing asks for it, and hides it
def test_compiled_comparisons(parent: SpitModel, images: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch.compile traces them, with their gradient; without a C++ compiler, which a machine may not have."""
    monkeypatch.setattr("torch.compile", partial(torch.compile, backend="aot_eager"))
    fused.cache_clear()
    student = made(parent, token_budget=None)
    for part in (images, images[:1]):  # another number of tokens
        plain, compiled = (Distillation(student, parent, DistillConfig(), compiled=compiled).loss(
            student, batch_of(part))[0] for compiled in (False, True))
        assert compiled.item() == pytest.approx(plain.item(), rel=1e-5)
        ours, theirs = (torch.autograd.grad(loss, student.embedder.projection.weight)[0] for loss in (plain, compiled))
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-6)
    fused.cache_clear()


def test_the_loss_of_a_batch_is_the_mean_of_its_parts(parent: SpitModel, images: Tensor) -> None:
    """So that many processes, or accumulated passes, learn as one."""
    student = made(parent, token_budget=None)
    task = Distillation(student, parent, DistillConfig())
    whole, *parts = (task.loss(student, batch_of(part))[0].item() for part in (images, images[:1], images[1:]))
    assert whole == pytest.approx(sum(parts) / 2, rel=1e-5)


def test_divergence_by_hand() -> None:
    wanted, logits = torch.tensor([[math.log(3), 0.0]]), torch.zeros(1, 2)
    by_hand = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert _divergence(logits, wanted).item() == pytest.approx(by_hand)
    assert _divergence(logits.repeat(2, 1), torch.cat([wanted, logits])).item() == pytest.approx(by_hand / 2)


def test_equal_logits_have_nothing_to_learn() -> None:
    logits = torch.randn(4, 7, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = _divergence(logits, logits.detach() + 5)  # softmax does not see a shift
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-5)
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-5


def smooth_l1(one: Tensor, other: Tensor) -> float:
    distance = (one - other).abs()
    return torch.where(distance < 1, distance**2 / 2, distance - 0.5).mean().item()


def test_the_loss_by_hand(parent: SpitModel, images: Tensor) -> None:
    student = made(parent, token_budget=None).train()
    config = DistillConfig(logits=2.0, class_token=3.0, tokens=5.0)
    loss, parts = Distillation(student, parent, config).loss(student, batch_of(images))
    answer, truth = student(images, record=("features",)), parent(images, record=("features",))

    def divergence(wanted: Tensor) -> float:
        p, q = (logits.double().softmax(1) for logits in (wanted, answer.logits))
        return (p * (p / q).log()).sum(1).mean().item()

    def missed(layer: int) -> float:
        wanted = dense_means(answer, truth.features[layer], truth.partition)
        distance = (answer.features[layer].values - wanted).square().mean(1) / wanted.var(1)
        return sum((each[0] + each[1:].mean()).item() for each in distance.split(
            answer.features[layer].counts.tolist())) / len(answer.partition)

    by_hand = {"logits": divergence(truth.logits),
               "class_token": smooth_l1(answer.class_token, truth.class_token),
               "tokens": sum(missed(layer) for layer in answer.features) / len(answer.features)}
    agreement = (answer.logits.argmax(1) == truth.logits.argmax(1)).float().mean()
    assert {name: part.item() for name, part in parts.items()} == pytest.approx(
        {**by_hand, "agreement": agreement.item()}, rel=1e-4, abs=1e-7)
    assert min(by_hand.values()) > 0
    weights = {"logits": 2, "class_token": 3, "tokens": 5}
    assert loss.item() == pytest.approx(sum(weights[name] * part for name, part in by_hand.items()), rel=1e-4)
    assert not any(part.requires_grad for part in parts.values())
    loss.backward()
    assert all(parameter.grad is not None for parameter in student.parameters())
    assert all(parameter.grad is None and not parameter.requires_grad for parameter in parent.parameters())


def test_the_parent_sees_further_sizes(parent: SpitModel, images: Tensor) -> None:
    """Logits and class token to learn are means over the sizes; tokens are those of the first."""
    student = made(parent, token_budget=None)
    small = [parent(images, record=("features",)), parent(_resized(images, 24), record=())]
    answer = student(images, record=("features",))
    logits, class_token = ((getattr(small[0], name) + getattr(small[1], name)) / 2
                           for name in ("logits", "class_token"))
    parts = Distillation(student, parent, DistillConfig(sizes=(24,))).loss(student, batch_of(images))[1]
    plain = Distillation(student, parent, DistillConfig()).loss(student, batch_of(images))[1]
    assert parts["logits"].item() == pytest.approx(_divergence(answer.logits, logits).item(), rel=1e-4)
    assert parts["class_token"].item() == pytest.approx(smooth_l1(answer.class_token, class_token), rel=1e-4)
    assert parts["logits"] != plain["logits"]
    assert parts["tokens"].item() == pytest.approx(plain["tokens"].item(), rel=1e-5)


def test_a_resized_image_keeps_its_colours(images: Tensor) -> None:
    flat = torch.full((1, 3, 16, 16), 200, dtype=torch.uint8)
    assert torch.equal(_resized(flat, 24), torch.full((1, 3, 24, 24), 200, dtype=torch.uint8))
    assert _resized(images, 24).shape == (2, 3, 24, 24)
    assert _resized(images, 24).float().mean() == pytest.approx(images.float().mean(), abs=2)


CROP = {"fill": "crop", "position_sigma": 0.0, "position_bins": 4}


@pytest.mark.parametrize("gradients", [True, False])
def test_a_student_of_crops_starts_as_its_parent_on_squares(parent: SpitModel, images: Tensor, gradients: bool) -> None:
    """The gradients, which see the region alone, start at 0."""
    student = made(parent, gradients=gradients, **CROP).eval()
    torch.testing.assert_close(student.with_tokenizer("patch", size=4)(images), parent(images), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(student(images), parent(images), atol=1e-2)
    if gradients:
        assert not student.embedder.projection.weight[:, 48 + 16 :].any()


def test_a_student_of_crops_learns(parent: SpitModel, images: Tensor) -> None:
    """A few steps bring its answers nearer to the parent's, and its gradients take part."""
    student = made(parent, "voronoi", {"cells": 6}, **CROP)
    task = Distillation(student, parent, DistillConfig(tokens=0.0, head_rate=0.0, sizes=(24,)))
    optimizer = torch.optim.AdamW([{"params": [*group.parameters.values()], "lr": 1e-3 * group.rate}
                                   for group in task.groups()])
    losses, head = [], student.head.linear.weight.clone()
    for _ in range(40):
        loss, parts = task.loss(student, batch_of(images))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(parts["logits"].item())
    assert losses[-1] < losses[0] / 2
    assert student.embedder.projection.weight[:, 48 + 16 :].any()
    assert torch.equal(student.head.linear.weight, head)


def test_parts_that_weigh_nothing_are_not_computed(parent: SpitModel, images: Tensor) -> None:
    student = made(parent)
    task = Distillation(student, parent, DistillConfig(class_token=0.0, tokens=0.0))
    loss, parts = task.loss(student, batch_of(images))
    assert parts.keys() == {"logits", "agreement"}
    assert loss.item() == parts["logits"].item()


def test_everyone_sees_the_same_mixed_images(parent: SpitModel, images: Tensor) -> None:
    student, seen = made(parent), []
    parent.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))

    def network(images: Tensor, **options: Any) -> Output:
        seen.append(images)
        answer: Output = student(images, **options)
        return answer

    batch = batch_of(images, cutmix=1.0)
    Distillation(student, parent, DistillConfig()).loss(network, batch)
    mixed = batch.draw.mix(images)
    assert not torch.equal(mixed, images)
    assert len(seen) == 2
    assert all(torch.equal(each, mixed) for each in seen)


def test_groups(parent: SpitModel) -> None:
    student = made(parent)
    groups = Distillation(student, parent, DistillConfig(embedder_rate=6.0)).groups()
    listed = [(name, id(parameter)) for group in groups for name, parameter in group.parameters.items()]
    assert sorted(listed) == sorted((name, id(parameter)) for name, parameter in student.named_parameters())
    rates = {name: group.rate for group in groups for name in group.parameters}
    assert {name for name, rate in rates.items() if rate == 6} == {
        "embedder.projection.weight", "embedder.projection.bias", "embedder.class_token"}
    assert set(rates.values()) == {1, 6}
    assert all(group.decay == (parameter.ndim > 1) for group in groups for parameter in group.parameters.values())


def test_a_head_that_stays(parent: SpitModel) -> None:
    groups = Distillation(made(parent), parent, DistillConfig(head_rate=0.0)).groups()
    still = {name for group in groups if group.rate == 0 for name in group.parameters}
    assert still == {"head.linear.weight", "head.linear.bias"}


def test_what_the_loop_asks_for(parent: SpitModel) -> None:
    student = made(parent)
    parent.train()
    task = Distillation(student, parent, DistillConfig(), measure=lambda model: {"student": float(model is student)})
    assert not parent.training
    assert task.module is task.product() is student
    assert task.validate() == {"student": 1.0}
    assert Distillation(student, parent, DistillConfig()).validate() == {}


def test_a_share_of_the_beginning_is_kept(parent: SpitModel) -> None:
    """A quarter of the way back, in what is validated and saved; what trains is left as it is."""
    student = made(parent)
    begun = {name: tensor.clone() for name, tensor in student.state_dict().items()}
    with torch.no_grad():
        for parameter in student.parameters():
            parameter += 1.0
    seen: list[SpitModel] = []
    task = Distillation(student, parent, DistillConfig(keep=0.25),
                        measure=lambda model: seen.append(model) or {})
    task.validate()
    for model in (*seen, task.product()):
        torch.testing.assert_close(model.state_dict(), {name: tensor + 0.75 for name, tensor in begun.items()})
    assert task.module is student
    assert len(seen) == 1
    torch.testing.assert_close(student.state_dict(), {name: tensor + 1.0 for name, tensor in begun.items()})


def test_a_share_of_another_beginning(parent: SpitModel) -> None:
    other = SpitModel(made(parent).config.replace(depth=1 + parent.config.depth))
    with pytest.raises(WeightsError, match=r"distill\.keep"):
        Distillation(other, parent, DistillConfig(keep=0.25))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("prefix", "seed"), [(0, 1), (1, 3), (3, 3)])
def test_a_wrapped_backbone_learns_its_own_squares(prefix: int, seed: int, photo: Callable[[str, int], Tensor]) -> None:
    """It starts from crops with a branch of zeros, and comes nearer; the parent stays as it is."""
    with patch.dict(SEAMS), torch.random.fork_rng():
        torch.manual_seed(seed)
        spit.register_seam(PlainViT, PlainSeam)
        vit = PlainViT(prefix=prefix).eval()
        for parameter, scale in ((vit.head.weight, 10), (vit.table, 0.1), (vit.first, 0.1)):
            parameter.data *= scale  # so that classes differ by what is in the photos
        parent = spit.wrap(vit)
        student = student_of(parent, {"tokenizer_options": {"levels": 3}})
        before = {name: tensor.clone() for name, tensor in parent.state_dict().items()}
        images = torch.stack([photo(name, 32) for name in ("coffee", "astronaut", "chelsea", "rocket")])
        assert torch.allclose(student(images), parent.with_tokenizer(student.tokenizer)(images), atol=1e-5)
        assert not student.embedder.branch.weight.any()
        task = Distillation(student, parent, DistillConfig(tokens=1.0))
        assert task.parent.config.tokenizer == "patch"
        torch.testing.assert_close(task.parent(images), vit((images / 255 - 0.5) / 0.25), rtol=1e-4, atol=1e-4)
        optimizer = torch.optim.AdamW([{"params": [*group.parameters.values()], "lr": 2e-3 * group.rate}
                                       for group in task.groups()])
        losses = []
        for _ in range(40):
            loss, parts = task.loss(student, batch_of(images))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append((float(loss.detach()), float(parts["logits"])))
        assert losses[-1][0] < losses[0][0]
        assert losses[-1][1] < losses[0][1] / 2
        assert student.embedder.branch.weight.any()
        assert all(torch.equal(before[name], tensor) for name, tensor in parent.state_dict().items())


def test_a_wrapped_backbone_without_classes(photo: Callable[[str, int], Tensor]) -> None:
    """Its summary and tokens are compared, and no logits."""
    with patch.dict(SEAMS):
        spit.register_seam(PlainViT, PlainSeam)
        parent = spit.wrap(PlainViT().eval())
        parent.reset_classifier(0)
        images = torch.stack([photo("coffee", 32), photo("astronaut", 32)])
        student = student_of(parent, {})
        loss, parts = Distillation(student, parent, DistillConfig()).loss(student, batch_of(images))
        assert set(parts) == {"class_token", "tokens"}
        assert loss.isfinite()
