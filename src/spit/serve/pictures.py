"""What is kept of a picture that the explorer's page shows."""

import io
import secrets
from collections import OrderedDict
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from spit import kernels
from spit.backbone import attention_maps
from spit.drawing.pictures import as_picture
from spit.images import quantize, to_float
from spit.predictor import Prediction, Predictor, resize, shorter_side
from spit.segmentation.saliency import hierarchy_of

MOST_LABELS = 2**16 - 1  # regions of the finest level that travels
COARSER = 4  # how many times fewer regions each level above the tokens has


class Picture:
    """A picture, what a model made of it, and the forms in which that travels. Of the worker's thread alone.

    It is shown as the model sees it, of up to 512 × 512 pixels. It keeps pixels, the original's too if that is larger,
    labels and half floats, about 3 MB at 512 × 512. The passes of the model, 55 MB and more, can be dropped.

    Args:
        predictor: the model, with the tokenizer that was asked for.
        image: ``(3, H, W)`` uint8.
        settings: what was asked for, for snippets.
    """

    def __init__(self, predictor: Predictor, image: Tensor, settings: dict[str, Any]) -> None:
        self.predictor, self.original, self.settings = predictor, image, settings
        side = shorter_side(image)
        self.image = image if side is None else quantize(resize(image, side)[None])[0]
        self.height, self.width = self.image.shape[1:]
        self._prediction: Prediction | None = None
        self._levels()

    @property
    def prediction(self) -> Prediction:
        """The model's answer; computed again if it was dropped."""
        found = self._prediction
        if found is None:
            found = self.predictor(self.original, crop=False)
            _ = found.tokens  # the page looks at every layer: one pass that records, where the picture is made
            self._prediction = found
        return found

    @property
    def nbytes(self) -> int:
        """Bytes that it keeps, graphs left out."""
        found = self._prediction
        passes = [] if found is None else [one for view in (found, *found.views.values()) for one in view.passes]
        kept = {id(one): one for one in (*vars(self).values(), *passes)}  # the original may be the image
        return sum(len(one) if isinstance(one, bytes) else getattr(one, "nbytes", 0) for one in kept.values())

    def drop(self) -> int:
        """Forget what can be computed again; returns the bytes."""
        before = self.nbytes
        self._prediction = None
        return before - self.nbytes

    def drop_gradients(self) -> None:
        """Forget what only explanations need."""
        found = self._prediction
        for one in found.passes if found is not None else ():
            one.forget_gradients()

    def _levels(self) -> None:
        """The hierarchy: its levels, the label map of the finest that travels, and the parents above it."""
        partition = self.prediction.partition[0]
        image = self.prediction.images[0]
        hierarchy = hierarchy_of(self.predictor.model.tokenizer, image, partition)
        counts = hierarchy.counts[:, 0].tolist()
        self.token_level = len(hierarchy) - 1
        self.tokens = int(counts[-1])
        self.label_level = next((level for level, count in enumerate(counts) if count <= MOST_LABELS), self.token_level)
        self.token_labels = _least(partition.blocks[0][0].cpu().numpy())
        self.labels = _least(hierarchy[self.label_level].blocks[0][0].cpu().numpy())
        parents = [hierarchy.parents[level].cpu().numpy() for level in range(self.label_level, self.token_level)]
        features, below = hierarchy.features[0][0].cpu(), partition.blocks[0][0].cpu()
        while counts[-1] > COARSER:
            count = counts[-1] // COARSER
            above = kernels.between(features, below, None, count)
            way = np.zeros(counts[-1], np.int32)
            way[below.numpy().ravel()] = above.numpy().ravel()
            parents.append(way)
            counts.append(count)
            below = above
        self.counts = counts
        self.parents = np.concatenate([np.zeros(0, np.uint16), *parents]).astype("<u2").tobytes()

    @cached_property
    def image_png(self) -> bytes:
        """The picture as the model sees it."""
        buffer = io.BytesIO()  # compressed little: a quarter of the time for a tenth more bytes, which do not go far
        as_picture(self.image).save(buffer, "PNG", compress_level=1)
        return buffer.getvalue()

    @property
    def labels_bin(self) -> bytes:
        """The label map of the finest level that travels, ``(H, W)`` uint16."""
        return self.labels.astype("<u2").tobytes()

    def npz(self) -> bytes:
        """Labels, final tokens and figures of the tokens as an NPZ file."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, labels=self.token_labels.astype(np.uint16),
                            tokens=np.frombuffer(self.tokens_bin, "<f2").reshape(self.tokens, -1),
                            regions=np.frombuffer(self.regions_bin, "<f4").reshape(self.tokens, -1))
        return buffer.getvalue()

    @cached_property
    def tokens_bin(self) -> bytes:
        """The final tokens, ``(N, D)`` float16."""
        return _half(self.prediction.tokens.values)

    @cached_property
    def regions_bin(self) -> bytes:
        """Size, mean red, green and blue, mean gradient, centre x and y, and perimeter of each token, float32."""
        return region_table(self.image, self.token_labels, self.tokens).astype("<f4").tobytes()

    @torch.no_grad()
    def attention(self, layer: int) -> bytes:
        """The attention of a layer, ``(heads, N + 1, N + 1)`` float16, the class token first."""
        trace = self.prediction.passes[0].trace()
        found = trace.heads[layer]
        maps = attention_maps(found.query, found.key, trace.spans)[0]
        prefix = self.predictor.model.prefix
        if prefix == 0:  # of a wrapped backbone; the mean of all tokens stands for what its head reads
            maps = F.pad(torch.cat([maps.mean(1, keepdim=True), maps], 1), (1, 0))
        own = [0, *range(max(prefix, 1), maps.shape[1])]  # without registers
        return _half(maps[:, own][:, :, own])

    def token_values(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """The value of each token, from a map that gives all pixels of a token the same, ``(H, W)`` to ``(N,)``."""
        found = np.zeros(self.tokens, np.float32)
        found[self.token_labels.ravel()] = values.ravel()
        return found


class Pictures:
    """Pictures by a random name, within a number of bytes and of pictures. Of the event loop alone.

    Beyond that, passes of the model are dropped first and then whole pictures, those first that were used longest ago.
    The picture used last stays whole.

    Args:
        most: pictures.
        most_bytes: of all pictures together.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, Picture] = OrderedDict()

    def add(self, picture: Picture) -> str:
        """Keep a picture; returns its name."""
        name = secrets.token_urlsafe(12)
        self._kept[name] = picture
        self.trim()
        return name

    def get(self, name: str) -> Picture | None:
        """The picture of a name, if it is still there."""
        picture = self._kept.get(name)
        if picture is not None:
            self._kept.move_to_end(name)
        return picture

    @property
    def nbytes(self) -> int:
        """Bytes of all pictures."""
        return sum(picture.nbytes for picture in self._kept.values())

    def trim(self) -> None:
        """Keep to the limits; to be called when pictures may have grown."""
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        excess = self.nbytes - self._most_bytes
        for picture in list(self._kept.values())[:-1]:
            if excess > 0:
                excess -= picture.drop()
        while excess > 0 and len(self._kept) > 1:
            excess -= self._kept.popitem(last=False)[1].nbytes

    def __len__(self) -> int:
        return len(self._kept)


def region_table(image: Tensor, labels: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Eight figures of each region, ``(N, 8)``; see :attr:`Picture.regions_bin`."""
    flat = labels.ravel()
    pixels = to_float(image[None])[0].cpu().double().numpy()
    grey = pixels.mean(0)
    slopes = [np.gradient(grey, axis=axis) if grey.shape[axis] > 1 else np.zeros_like(grey) for axis in (0, 1)]
    rows, columns = np.indices(labels.shape)
    edges = np.zeros(labels.shape)
    padded = np.pad(labels, 1, constant_values=-1)
    for y, x in ((0, 1), (2, 1), (1, 0), (1, 2)):
        edges += padded[y : y + labels.shape[0], x : x + labels.shape[1]] != labels
    sizes = np.bincount(flat, minlength=count).astype(np.float64)
    means = [np.bincount(flat, values.ravel(), count) / sizes
             for values in (*pixels, np.hypot(*slopes), columns + 0.5, rows + 0.5)]
    return np.stack([sizes, *means, np.bincount(flat, edges.ravel(), count)], axis=1)


def _least(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels in the smallest type that holds them."""
    return labels.astype(np.min_scalar_type(labels.max()))


def _half(values: Tensor) -> bytes:
    return values.detach().float().cpu().numpy().astype("<f2").tobytes()
