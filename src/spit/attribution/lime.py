"""LIME: a linear model of a class's probability when regions are removed (Ribeiro et al., 2016)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.attribution.options import MethodOptions, Omission, Removal
from spit.attribution.passes import config_of_passes, image_generator
from spit.errors import MissingExtra
from spit.forward_pass import ForwardPass
from spit.images import quantize, to_float
from spit.interruption import may_stop
from spit.model import SpitModel
from spit.options import Options, documented, option, same
from spit.tokens import Tokens

Query = tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]


@documented
@dataclass(frozen=True)
class Lime(Options):
    """captum's LIME on SLIC regions, as in App. D.

    Regions come from SLIC, not from the model's tokenizer, and masks from the image's pixels and the seed, so all
    models get the same masks. Each sample draws ``p ~ U(0.1, 0.3)`` once. The paper does not say whether p is the
    probability of "presence or omission" of a region: ``p="omit"`` removes about a fifth of the image, ``p="keep"``
    four fifths. Nor does it say what happens to an omitted region. With ``remove="pixels"`` it gets the image's mean
    colour, and the image is tokenized again. With ``remove="tokens"`` the model gets only the tokens that have more
    than half of their pixels in present regions. The authors' release keeps p and drops tokens.
    docs/attribution.md compares them.

    Samples are weighted by LIME's kernel, ``exp(−d² / 2σ²)`` with d the cosine distance to the whole image and σ =
    0.25. The surrogate is ridge regression with an intercept. ``progress`` is called after each forward pass with the
    number of an image's masks done.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import Lime
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 32, 32), Lime(samples=8, regions=4), target=3).shape
        torch.Size([1, 32, 32])
    """

    name: ClassVar[str] = "lime"
    of_class: ClassVar[bool] = True

    samples: int = option(256, "Masks an image, each a forward pass of one image", least=1)
    regions: int = option(64, "Number of regions that SLIC aims at", least=1)
    share: tuple[float, float] = option((0.1, 0.3), "Bounds of the probability p", least=0, most=1)
    p: Omission = same(MethodOptions, "lime_p", "omit")
    remove: Removal = same(MethodOptions, "lime_remove", "pixels")
    penalty: float = option(1.0, "Penalty of the ridge regression", least=0)
    seed: int = option(0, "Seed of the masks")
    batch: int | None = option(None, "Masked images in a forward pass (default: 32, or 256 on a GPU)", least=1)
    progress: Callable[[int], None] = field(default=may_stop, compare=False, repr=False)

    config = config_of_passes

    @torch.no_grad()
    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        check_lime()
        return [self._explain(seen.model, image, int(label)) for image, label in zip(seen.images, classes, strict=True)]

    def _explain(self, model: SpitModel, image: Tensor, label: int) -> Tensor:
        from captum.attr import LimeBase

        labels = slic_regions(image, self.regions).to(image.device)
        masks = self.masks(image, int(labels.max()) + 1).to(image.device)
        present, ask = (without_tokens if self.remove == "tokens" else without_pixels)(model, image, labels)
        answered = 0

        def probabilities(perturbed: Tensor) -> Tensor:
            nonlocal answered
            answer = ask(perturbed).float().softmax(1)[:, label]
            answered += len(perturbed)
            self.progress(answered)
            return answer

        def sample(*_: Any, **__: Any) -> Iterator[Tensor]:
            yield from masks.split(1)

        lime = LimeBase(probabilities, Ridge(self.penalty), similarity, sample, perturb_interpretable_space=True,
                        from_interp_rep_transform=lambda mask, *_, **__: present(mask[0]), to_interp_rep_transform=None)
        batch = self.batch or (256 if image.is_cuda else 32)
        with torch.random.fork_rng(devices=()):  # captum's data loader draws a seed that nothing uses
            coefficients: Tensor = lime.attribute(image[None], n_samples=len(masks), perturbations_per_eval=batch)
        return coefficients.to(image.device)[labels]

    def masks(self, image: Tensor, regions: int) -> Tensor:
        """Which regions are present in each sample, ``(samples, regions)`` float."""
        random = image_generator(image, self.seed)
        least, most = self.share
        share = torch.rand(self.samples, 1, generator=random) * (most - least) + least
        drawn = torch.rand(self.samples, regions, generator=random)
        return (drawn >= share if self.p == "omit" else drawn < share).float()


def without_pixels(model: SpitModel, image: Tensor, labels: Tensor) -> Query:
    """A function that paints the regions that a mask omits, and the model that sees such images."""
    pixels = to_float(image[None])
    mean = pixels.mean((2, 3), keepdim=True)
    return lambda mask: torch.where(mask[labels].bool(), pixels, mean), model


def without_tokens(model: SpitModel, image: Tensor, labels: Tensor) -> Query:
    """A function that finds the tokens of the regions that a mask keeps, and γ, f and h on those tokens alone."""
    partition, features = model.tokenize(image[None])
    [tokens], regions = partition.blocks[0], int(labels.max()) + 1
    count = len(features.values)
    shared = torch.bincount(tokens.flatten().long() * regions + labels.flatten(), minlength=count * regions)
    inside = shared.view(count, regions).float() / partition.sizes()[:, None]  # share of a token's pixels in a region

    def ask(kept: Tensor) -> Tensor:
        copies = Tokens(features.values.repeat(len(kept), 1), count * torch.arange(len(kept) + 1, device=kept.device))
        return model.run(copies.select(kept.flatten()))[0]

    return lambda mask: (inside @ mask > 0.5)[None], ask


def check_lime() -> None:
    """Raise MissingExtra if captum or scikit-image is not installed."""
    for package, module in (("captum", "captum.attr"), ("scikit-image", "skimage.segmentation")):
        try:
            __import__(module)
        except ImportError as error:
            raise MissingExtra(package, "explain", "LIME") from error


def slic_regions(image: Tensor, count: int) -> Tensor:
    """SLIC's regions of an image's 8-bit pixels, numbered from 0, ``(H, W)`` int64."""
    from skimage.segmentation import slic

    pixels = quantize(image[None])[0].permute(1, 2, 0).cpu().numpy()
    return torch.from_numpy(slic(pixels, n_segments=count, start_label=0, channel_axis=-1)).to(torch.int64)


def similarity(original: Any, perturbed: Any, mask: Tensor, width: float = 0.25, **_: Any) -> Tensor:
    """LIME's kernel: ``exp(−d² / 2σ²)`` with d the cosine distance of a mask to the whole image."""
    return torch.exp(-(1 - mask.mean(1).sqrt()) ** 2 / (2 * width**2))


class Ridge:
    """``min Σ w (y − x β − b)² + penalty ‖β‖²``, with the methods that captum asks of an interpretable model."""

    def __init__(self, penalty: float) -> None:
        self.penalty = penalty
        self.coefficients = torch.zeros(0)

    def fit(self, train_data: Any, **_: Any) -> None:
        """Fit to captum's one batch of (inputs, outputs, weights)."""
        [(inputs, outputs, weights)] = train_data
        inputs, outputs, weights = inputs.double(), outputs.double(), weights.double()[:, None]
        total = weights.sum()
        x = inputs - (weights * inputs).sum(0) / total  # centred, so the intercept drops out
        y = outputs - (weights[:, 0] * outputs).sum() / total
        normal = x.T @ (weights * x) + self.penalty * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        self.coefficients = torch.linalg.solve(normal, x.T @ (weights[:, 0] * y)).float()

    def representation(self) -> Tensor:
        """The coefficients, one for each region."""
        return self.coefficients
