"""Training of a token head for saliency, without any mask: the model's own cut teaches it.

Each photo is looked at several times, flipped and at other sizes. A look's scores, those of the cut and later the mean
of cut and head, are smoothed along edges of the region graph. The looks vote at the points of a grid, and the sign of
the vote is the target of each token there. A linear layer learns the targets, and the next round starts from its
scores. It is too small to learn the cut's mistakes, which differ from photo to photo.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import cos, pi

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from spit.model import SpitModel
from spit.predictor import Predictor, Sources, at_size
from spit.segmentation.graph import Floats, RegionGraph
from spit.segmentation.head import SURE, TokenHead, stacked_tokens
from spit.segmentation.options import TokenCut
from spit.segmentation.saliency import cut_tokens
from spit.segmentation.smoothing import smooth
from spit.training.options import BATCH, HeadOptions

SIZE = 320
GRID = 96  # points of a photo's grid in each direction
SCALES = (0.75, 1.25)  # of further looks, in turn
SHARES = (0.02, 0.7)  # a target with less or more foreground teaches nothing
HEAVIEST = 4.0  # a token counts by its size over the mean size, at most this

Progress = Callable[[str, int, int], None]  # what is being done, and how much of how much is done


@dataclass(frozen=True)
class Look:
    """One look at a photo.

    Attributes:
        tokens: as the head sees them, layers side by side, on the CPU.
        cut: the standardised Fiedler vector.
        graph: of the regions.
        points: the region under each point of the photo's grid.

    Shape:
        tokens ``(N, L · D)`` float16, cut ``(N,)``, points ``(GRID²,)`` int64.
    """

    tokens: Tensor
    cut: Floats
    graph: RegionGraph
    points: NDArray[np.int64]


def fit_head(model: SpitModel | Predictor, photos: Sequence[Sources], options: HeadOptions | None = None,
             size: int = SIZE, progress: Progress = lambda doing, done, total: None) -> TokenHead:
    """Train a token head for saliency on photos without labels or masks; the model itself stays as it is.

    Args:
        model: in evaluation mode.
        photos: images of any size, or paths.
        size: shorter side at which photos are seen; further looks see three or five quarters of it.
        progress: called as the work goes on.

    Example:
        >>> import spit, torch
        >>> from spit.training.head import HeadOptions, fit_head
        >>> model = spit.create_model("vit_tiny_16")
        >>> fit_head(model, [torch.rand(3, 64, 64)], HeadOptions(layers=(5, 11), steps=2), 64).layers
        (5, 11)
    """
    from spit import __version__  # spit itself imports this module

    options = options or HeadOptions()
    predictor = Predictor.of(model)
    layers = options.layers or default_layers(predictor.model.config.depth)
    if max(layers) >= predictor.model.config.depth:
        raise ValueError(f"expected layers below {predictor.model.config.depth}, got {max(layers)}")
    if not len(photos):
        raise ValueError("expected photos to train a head on, got none")
    seen = []
    for index, photo in enumerate(photos):
        seen.append(look(predictor, photo, layers, options.views, size))
        progress("Looking at photos", index + 1, len(photos))
    weights, bias = self_train(seen, options, predictor.device, progress)
    about = {"weights": predictor.digest, "photos": len(seen), "size": size, "spit": __version__,
             **{name: value for name, value in options.to_dict().items() if name != "layers"}}
    return TokenHead(weights.view(len(layers), -1), bias, tuple(layers), about)


def default_layers(depth: int) -> tuple[int, ...]:
    """Six layers, or as many as there are, evenly spread, the last among them: 1, 3, …, 11 of twelve."""
    count = min(6, depth)
    return tuple(depth * (index + 1) // count - 1 for index in range(count))


def look(predictor: Predictor, photo: Sources, layers: Sequence[int], views: int, size: int) -> list[Look]:
    """All looks at one photo: as it is, then flipped and at another size in turn."""
    prediction = predictor(photo, crop=False, size=size)
    [whole] = prediction.images
    looks = []
    for view in range(views + 1):
        flipped = view % 2 == 1
        if view:
            scaled = round(size * SCALES[(view - 1) % len(SCALES)])
            prediction = predictor(whole.flip(2) if flipped else whole, crop=False, size=scaled)
        [image], [labels] = prediction.images, prediction.partition.blocks
        [seen] = prediction.passes
        values = torch.cat([tokens.values for tokens in stacked_tokens(seen, layers)], dim=1)
        cut = cut_tokens(seen, TokenCut())[0].double().cpu().numpy()
        upright = labels[0].flip(1) if flipped else labels[0]
        points = at_size(upright, (GRID, GRID)).flatten().long().cpu().numpy()
        looks.append(Look(values.half().cpu(), cut, RegionGraph.of(image, labels[0]), points))
    return looks


def agree(looks: Sequence[Look], scores: Sequence[Floats]) -> tuple[list[Floats], float]:
    """What all looks at a photo together say of each look's tokens, and the share of foreground on the grid.

    Scores are smoothed within each look, averaged over looks at each point of the grid, and averaged over the points of
    each token; a token without a point keeps its own.
    """
    own = [smooth(one.graph, score.clip(-SURE, SURE)) for one, score in zip(looks, scores, strict=True)]
    vote = np.mean([score[one.points] for one, score in zip(looks, own, strict=True)], axis=0)
    answers = []
    for one, score in zip(looks, own, strict=True):
        count = np.bincount(one.points, minlength=len(score))
        mean = np.bincount(one.points, vote, len(score)) / np.maximum(count, 1)
        answers.append(np.where(count > 0, mean, score))
    return answers, float((vote > 0).mean())


def self_train(photos: Sequence[Sequence[Look]], options: HeadOptions, device: torch.device | str = "cpu",
               progress: Progress = lambda doing, done, total: None) -> tuple[Tensor, Tensor]:
    """Rounds of targets and training; weights ``(L · D,)`` and bias ``()`` of the last."""
    generator = torch.Generator().manual_seed(options.sample_seed)
    rows = [[torch.randperm(len(one.cut), generator=generator)[: options.sampled] for one in looks]
            for looks in photos]
    inputs = torch.cat([one.tokens[own] for looks, chosen in zip(photos, rows, strict=True)
                        for one, own in zip(looks, chosen, strict=True)]).to(device)
    weights = bias = torch.zeros(())
    for number in range(1, options.generations + 1):
        targets, weighed = [], []
        for place, (looks, chosen) in enumerate(zip(photos, rows, strict=True), start=1):
            scores = [one.cut if number == 1 else (one.cut + _score(one, weights, bias)) / 2 for one in looks]
            found, share = agree(looks, scores)
            useful = float(SHARES[0] < share < SHARES[1])
            for one, own, score in zip(looks, chosen, found, strict=True):
                size = torch.from_numpy(one.graph.sizes / one.graph.sizes.mean()).float()
                targets.append(torch.from_numpy(score > 0).float()[own])
                weighed.append(useful * size[own].clamp_max(HEAVIEST))
            progress(f"Targets of round {number}", place, len(photos))
        weights, bias = train_linear(inputs, torch.cat(targets).to(device), torch.cat(weighed).to(device), options)
    return weights, bias


def train_linear(inputs: Tensor, targets: Tensor, weights: Tensor, options: HeadOptions) -> tuple[Tensor, Tensor]:
    """Logistic regression by AdamW on inputs scaled to mean 0 and variance 1; the scaling is folded into the answer.

    Shape:
        inputs ``(n, C)``, targets and weights ``(n,)`` to ``(C,)`` and ``()`` float32 on the CPU.
    """
    mean, deviation = _moments(inputs)
    linear = torch.zeros(inputs.shape[1] + 1, device=inputs.device, requires_grad=True)  # the bias last
    optimizer = torch.optim.AdamW([linear], lr=options.rate, weight_decay=options.decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 * (1 + cos(pi * step / options.steps)))
    generator = torch.Generator().manual_seed(options.sample_seed)
    for _ in range(options.steps):
        batch = torch.randint(len(inputs), (BATCH,), generator=generator).to(inputs.device)
        found = (inputs[batch].float() - mean) / deviation @ linear[:-1] + linear[-1]
        loss = F.binary_cross_entropy_with_logits(found, targets[batch], weights[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    answer = linear.detach()
    scaled = answer[:-1] / deviation
    return scaled.cpu(), (answer[-1] - mean @ scaled).cpu()


def _moments(inputs: Tensor, together: int = 1 << 14) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column, ``(C,)`` float32, some rows at a time."""
    sums, squares = (torch.zeros(inputs.shape[1], dtype=torch.float64, device=inputs.device) for _ in range(2))
    for some in inputs.split(together):
        sums += some.double().sum(0)
        squares += some.double().square().sum(0)
    mean = sums / len(inputs)
    return mean.float(), (squares / len(inputs) - mean.square()).clamp_min(1e-6).sqrt().float()


def _score(one: Look, weights: Tensor, bias: Tensor) -> Floats:
    """A head's log-odds of the tokens of a look."""
    answer: Floats = (one.tokens.float() @ weights + bias).double().numpy()
    return answer
