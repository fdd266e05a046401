"""LIME: a linear model of a class's probability when regions are removed (Ribeiro et al., 2016)."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.errors import MissingExtra
from spit.forward_pass import ForwardPass
from spit.images import quantize, to_float
from spit.model import SpitModel
from spit.options import Options, documented, option


@documented
@dataclass(frozen=True)
class Lime(Options):
    """captum's LIME on SLIC regions, as in App. D.

    Regions come from SLIC, not from the model's tokenizer, and masks from the image's pixels and the seed, so all
    models get the same masks. In each sample a region is *omitted*, replaced by the image's mean colour, with
    probability ``p ~ U(0.1, 0.3)``, drawn once a sample. (The paper does not say whether p is of presence or omission;
    with presence the model would see almost nothing.) Samples are weighted by LIME's kernel, ``exp(−d² / 2σ²)`` with d
    the cosine distance to the whole image and σ = 0.25. The surrogate is ridge regression with an intercept.
    ``progress`` is called after each forward pass with the number of an image's masks done.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import Lime
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 32, 32), Lime(samples=8, regions=4), target=3).shape
        torch.Size([1, 32, 32])
    """

    name: ClassVar[str] = "lime"
    of_class: ClassVar[bool] = True

    samples: int = option(256, "LIME: masks an image, each a forward pass of one image", least=1)
    regions: int = option(64, "Number of regions that SLIC aims at", least=1)
    omitted: tuple[float, float] = option((0.1, 0.3), "Bounds of the probability that a region is omitted", least=0,
                                          most=1)
    penalty: float = option(1.0, "Penalty of the ridge regression", least=0)
    seed: int = option(0, "Seed of the masks")
    batch: int | None = option(None, "Masked images in a forward pass (default: 32, or 256 on a GPU)", least=1)
    progress: Callable[[int], None] = field(default=lambda masks: None, compare=False, repr=False)

    def config(self) -> dict[str, Any]:
        """Everything that a map depends on beside model and image."""
        return {key: value for key, value in self.to_dict().items() if key not in ("batch", "progress")}

    @torch.no_grad()
    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        check_lime()
        return [self._explain(seen.model, image, int(label)) for image, label in zip(seen.images, classes, strict=True)]

    def _explain(self, model: SpitModel, image: Tensor, label: int) -> Tensor:
        from captum.attr import LimeBase

        labels = slic_regions(image, self.regions).to(image.device)
        pixels = to_float(image[None])
        mean = pixels.mean((2, 3), keepdim=True)
        masks = self.masks(image, int(labels.max()) + 1).to(image.device)
        answered = 0

        def probabilities(occluded: Tensor) -> Tensor:
            nonlocal answered
            answer: Tensor = model(occluded).float().softmax(1)[:, label]
            answered += len(occluded)
            self.progress(answered)
            return answer

        def present(mask: Tensor, *_: Any, **__: Any) -> Tensor:
            return torch.where(mask[0, labels].bool(), pixels, mean)

        def sample(*_: Any, **__: Any) -> Iterator[Tensor]:
            yield from masks.split(1)

        lime = LimeBase(probabilities, Ridge(self.penalty), similarity, sample, perturb_interpretable_space=True,
                        from_interp_rep_transform=present, to_interp_rep_transform=None)
        batch = self.batch or (256 if image.is_cuda else 32)
        coefficients: Tensor = lime.attribute(pixels, n_samples=len(masks), perturbations_per_eval=batch)
        return coefficients.to(image.device)[labels]

    def masks(self, image: Tensor, regions: int) -> Tensor:
        """Which regions are present in each sample, ``(samples, regions)`` float."""
        random = image_generator(image, self.seed)
        least, most = self.omitted
        omitted = torch.rand(self.samples, 1, generator=random) * (most - least) + least
        return (torch.rand(self.samples, regions, generator=random) >= omitted).float()


def image_generator(image: Tensor, seed: int) -> torch.Generator:
    """A generator on the CPU that depends on an image's 8-bit pixels and a seed alone."""
    pixels = quantize(image[None])[0].contiguous().cpu().numpy()
    digest = hashlib.blake2b(repr((seed, pixels.shape)).encode() + pixels.tobytes(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little", signed=True))


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
