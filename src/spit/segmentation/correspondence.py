"""Parts that find each other across images (§3.3, App. F)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.images import Images, image_blocks
from spit.model import SpitModel
from spit.partition import Partition
from spit.segmentation.cut import Cut
from spit.segmentation.observation import check_model, join, maps_of, parts_of
from spit.segmentation.saliency import cut_tokens
from spit.tokens import plural

TEMPERATURE = 0.01
COMPONENTS = 3


@dataclass(frozen=True)
class Correspondence:
    """Pseudo-colours of a source image, and what they become on target images; black is its background.

    Shape:
        source ``(H, W, 3)``; targets ``(B, H, W, 3)``, or a tuple of ``(H, W, 3)`` where sizes differ; float32
        in [0, 1].
    """

    source: Tensor
    targets: Tensor | tuple[Tensor, ...]

    def __repr__(self) -> str:
        (height, width), targets = self.source.shape[:2], plural(len(self.targets), "target")
        return f"Correspondence(source {width} × {height}, {targets})"


@dataclass(frozen=True)
class Scene:
    """One image as correspondences see it.

    Shape:
        image ``(3, H, W)``, tokens ``(N, D)`` of unit length, side ``(N,)`` bool, True on the foreground, colors
        ``(N, 3)`` in [0, 1], 0 on the background.
    """

    image: Tensor
    partition: Partition
    tokens: Tensor
    side: Tensor
    colors: Tensor

    def paint(self, colors: Tensor) -> Tensor:
        """Colours of the regions at the image's own pixels, ``(N, 3)`` to ``(H, W, 3)`` float32."""
        return maps_of(self.partition, colors.float(), [self.image])[0]


@torch.no_grad()
def correspond(model: SpitModel, source: Tensor, targets: Images, *, temperature: float = TEMPERATURE,
               tau: float | None = None, features: str = "tokens", layer: int = -1, foreground: str = "border",
               size: int | None = None) -> Correspondence:
    """Colour the parts of a source image, and the parts of target images that are like them.

    With z the final tokens of unit length, class token apart, ``A = softmax(z_m z_nᵀ / 0.01)`` is the cross
    attention between source m and target n, and ``c_{m→n} = Aᵀ c_m``: each token of the target mixes the
    colours of the source's tokens that it is like, so the softmax runs over the source. ``c_m`` are the first
    three principal components of ``z_m``, brought to [0, 1] over the foreground, and 0 on the background that
    the normalised cut finds.

    Where the paper's colours are random in their signs (``torch.pca_lowrank``), these are not: the loading of
    the largest magnitude of every component is positive.

    Args:
        model: in evaluation mode.
        source: one image.
        targets: at any size; never modified.
        temperature: of the softmax.
        tau, features, layer, foreground, size: of the cut, see :class:`~spit.segmentation.Cut`.

    Shape:
        source ``(3, H, W)``; targets ``(B, 3, H, W)`` or a list of ``(3, H, W)``.

    Raises:
        TypeError, ValueError: several sources, a temperature of 0, or what :func:`spit.segment` refuses.
    """
    blocks = image_blocks(source)
    if len(blocks) != 1 or len(blocks[0]) != 1:
        raise ValueError(f"expected one source image, got {sum(len(block) for block in blocks)}; "
                         "call once for each source")
    if not temperature > 0:
        raise ValueError(f"expected a temperature above 0, got {temperature}")
    cut = Cut(tau, features, layer, foreground, size)
    [scene] = scenes(model, blocks[0], cut)
    found = [transfer(scene, target, temperature) for target in scenes(model, targets, cut)]
    return Correspondence(scene.paint(scene.colors), join(found))


@torch.no_grad()
def scenes(model: SpitModel, images: Images, cut: Cut) -> list[Scene]:
    """What correspondences need of each image, to be used in any pair."""
    check_model(model)
    cut.layer_of(model.config.depth)
    if cut.scales != 1:
        raise ValueError(f"expected scales 1, since parts that correspond are tokens of one scale, got {cut.scales}")
    made = []
    for some in parts_of(images):
        seen, values, _ = cut_tokens(model, some, cut)
        sides = torch.split(values > 0, seen.tokens.counts.tolist())
        for index, (image, tokens, side) in enumerate(zip(some, seen.tokens, sides, strict=True)):
            unit = F.normalize(tokens.double(), dim=1)
            made.append(Scene(image, seen.partition[index], unit, side, pseudo_colors(unit, side)))
    return made


@torch.no_grad()
def transfer(source: Scene, target: Scene, temperature: float = TEMPERATURE) -> Tensor:
    """``c_{m→n} = Aᵀ c_m`` at the target's pixels, ``(H, W, 3)`` float32."""
    return target.paint(mix(source.tokens, target.tokens, source.colors, temperature))


@torch.no_grad()
def colored_share(source: Scene, target: Scene, temperature: float = TEMPERATURE) -> float:
    """How much of the target's area the attention finds in the source's foreground; the rest is black.

    Near 0 where the target's parts are all liker to the source's background, as in photos of nothing in common.
    """
    found = mix(source.tokens, target.tokens, source.side[:, None].to(source.tokens), temperature)
    return float(target.paint(found).mean())


def mix(source: Tensor, target: Tensor, colors: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """``softmax(z_m z_nᵀ / temperature)ᵀ c_m``, the softmax over the source's tokens.

    Shape:
        source ``(M, D)``, target ``(N, D)`` and colors ``(M, 3)`` to ``(N, 3)``.
    """
    return (source @ target.T / temperature).softmax(0).T @ colors


def pseudo_colors(tokens: Tensor, side: Tensor) -> Tensor:
    """The first three principal components as colours, black beyond the foreground.

    Components are those of all tokens; each is brought to [0, 1] over the foreground. One without any spread
    there, as of a single token, is 0.5. Fewer columns than three leave the others at 0.5.

    Shape:
        tokens ``(N, D)`` float64 and side ``(N,)`` bool to ``(N, 3)`` float64.
    """
    centred = tokens - tokens.mean(0)
    _, vectors = torch.linalg.eigh(centred.T @ centred)
    vectors = vectors.flip(1)[:, :COMPONENTS]
    signs = vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).sign()
    scores = F.pad(centred @ (vectors * signs), (0, COMPONENTS - vectors.shape[1]))
    if not bool(side.any()):
        return torch.zeros_like(scores)
    low, high = torch.aminmax(scores[side], dim=0)
    spread = high - low
    colors = torch.where(spread > 1e-9, (scores - low) / spread.clamp_min(1e-9), 0.5)
    return colors.clamp(0, 1) * side[:, None]


def all_pairs(model: SpitModel, images: Sequence[Tensor], cut: Cut,
              temperature: float = TEMPERATURE) -> list[list[Tensor]]:
    """Every image as the source of every other (Fig. 3's grid).

    Shape:
        row m, column n is ``c_{m→n}`` at image n's pixels, ``(H, W, 3)``; on the diagonal the source's own colours.
    """
    return pairs_of(scenes(model, images, cut), temperature)


def pairs_of(made: Sequence[Scene], temperature: float = TEMPERATURE) -> list[list[Tensor]]:
    """:func:`all_pairs` of images that the model has seen."""
    return [[source.paint(source.colors) if source is target else transfer(source, target, temperature)
             for target in made] for source in made]
