"""Predictor and Prediction: a model that is ready to answer, and what it says about images it has seen."""

from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image as Picture
from torch import Tensor
from torch.nn import functional as F

from spit import weights
from spit.data.classes import Guess, class_names
from spit.data.crops import central_square
from spit.data.images import load_image, to_rgb
from spit.devices import choose_device
from spit.drawing.notebook import prediction_png
from spit.drawing.pictures import draw_overlay
from spit.forward_pass import ForwardPass, each_alone
from spit.images import conversion, image_blocks, quantize, to_float
from spit.model import SpitModel
from spit.registry import load_model
from spit.tokens import Tokens

if TYPE_CHECKING:
    from spit.attribution.methods import Method, Target
    from spit.segmentation.saliency import Segmentation

DEFAULT_SIZE = 224
LARGEST = 2**14  # side of a square
SEEN = 2**18  # most pixels of a whole image that a model sees by default, 512 × 512; about 1,000 superpixels
KEPT = 2**28  # numbers that a Prediction keeps of its layers, 1 GiB of float32; beyond, they are computed again
ALONE = ("cpu",)  # devices where each image runs alone: a batch is no faster, and an image's answers stay its own

Source = Tensor | NDArray[np.uint8] | Picture | str | PathLike[str]
Sources = Source | Sequence[Source]
Maps = Tensor | tuple[Tensor, ...]  # one tensor if all images have the same size


def load(source: str | PathLike[str], device: str = "auto", size: int | None = None) -> "Predictor":
    """Load a model that is ready to answer.

    Args:
        source: what :func:`spit.load_model` takes: a name (``spit_tiny_16``, ``spit_tiny_16.deit_retrofit``), a
            folder, a Hugging Face hub id, or a file with a timm ViT state dict or a checkpoint of the authors'
            release.
        device: "cpu", "cuda", "cuda:1", or "auto" for CUDA if there is any.
        size: side of the square that the model sees (default: the model's own).

    Example:
        >>> import spit
        >>> from skimage.data import chelsea
        >>> predictor = spit.load("spit_tiny_16", device="cpu")
        >>> prediction = predictor(chelsea())
        >>> [name for name, probability in prediction.top(2)[0]]
        ['Egyptian cat', 'tabby']
    """
    if not isinstance(source, str | PathLike):
        raise TypeError(f"expected a name, a path or a hub id, got {type(source).__name__}; a model goes to "
                        "spit.Predictor(model)")
    place = choose_device(device)
    return Predictor(load_model(source).to(place), _name_of(Path(source)), size)


class Predictor:
    """A model that is ready to answer, with its device, class names, image size and the digest of its weights.

    Calling it runs one pass and returns a :class:`Prediction`.

    Args:
        model: in evaluation mode, on the device where it is to run.
        name: for tables and messages.
        size: side of the square that the model sees (default: the config's ``eval_size``, or 224).

    Example:
        >>> import spit, torch
        >>> predictor = spit.Predictor(spit.create_model("spit_tiny_16"))
        >>> predictor(torch.rand(2, 3, 300, 400)).logits.shape
        torch.Size([2, 1000])
    """

    def __init__(self, model: SpitModel, name: str = "model", size: int | None = None) -> None:
        if not isinstance(model, SpitModel):
            raise TypeError(f"expected a model of spit, got {type(model).__name__}; spit.load reads one by name, "
                            "spit.create_model makes one, and spit.wrap of a module of timm or transformers")
        _check(model, size)
        self.model = model
        self.name = name
        self.size = size or model.config.eval_size or DEFAULT_SIZE
        self._source: Predictor | None = None  # one of the same weights

    @staticmethod
    def of(model: "SpitModel | Predictor") -> "Predictor":
        """A model as a predictor; a predictor as it is."""
        return model if isinstance(model, Predictor) else Predictor(model)

    @property
    def device(self) -> torch.device:
        """Where the model runs."""
        return self.model.device

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """A name for each logit: the model's own, ImageNet's if there are 1,000, or numbers."""
        return class_names(self.model.config)

    @cached_property
    def digest(self) -> str:
        """A hash of the weights; it does not depend on the tokenizer."""
        return weights.digest(self.model) if self._source is None else self._source.digest

    def expect_classes(self) -> None:
        """Raise ValueError if the model has no head."""
        if self.model.config.num_classes == 0:
            raise ValueError(f"{self.name}: expected a model that knows classes, got one without a head; take one that "
                             "has it, make it with num_classes, or explain by flow or rollout in Python, which need "
                             "none")

    def with_tokenizer(self, tokenizer: Any, **options: Any) -> "Predictor":
        """The same weights on other tokens; see :meth:`spit.SpitModel.with_tokenizer`."""
        return self._with_model(self.model.with_tokenizer(tokenizer, **options))

    def with_backbone(self, name: str, **options: Any) -> "Predictor":
        """The same weights in another f; see :meth:`spit.SpitModel.with_backbone`."""
        return self._with_model(self.model.with_backbone(name, **options))

    def _with_model(self, model: SpitModel) -> "Predictor":
        """The same predictor for another model of the same weights."""
        other = Predictor(model, self.name, self.size)
        other._source = self
        return other

    def __call__(self, images: Sources, *, crop: bool = True, size: int | None = None) -> "Prediction":
        """Run one pass over images.

        Args:
            images: a ``(B, C, H, W)`` or ``(C, H, W)`` tensor, uint8 or floats in [0, 1]; a path, a PIL image, or an
                ``(H, W)``, ``(H, W, 3)`` or ``(B, H, W, 3)`` array, uint8 or floats in [0, 1]; or a list of these, of
                any sizes. They are not modified. Colours of PIL images are read as those of files; call
                ``PIL.ImageOps.exif_transpose`` first to turn a photo upright, as is done with paths.
            crop: True resizes each image and takes its central square, as classifiers are evaluated, or the whole
                image as a square if the model's ``eval_crop`` is None; False takes the whole image.
            size: shorter side of what the model sees (default: the predictor's for squares; for whole images their own,
                up to 512 × 512 pixels in all). Maps of whole images come back at the image's own pixels.
        """
        if not isinstance(crop, bool):
            raise TypeError(f"expected crop to be True or False, got {crop!r}")
        _check(self.model, size)  # its mode may have changed
        given: list[Any] = list(images) if isinstance(images, list | tuple) else [images]
        seen: list[Tensor] = []
        originals: list[Tensor] = []
        for item in given:
            whole = _tensors(item)
            sides = [None if crop else size or shorter_side(image) for image in whole]
            if crop or any(sides):
                image_blocks(whole)  # checks values before resizing clamps them
            if crop:
                whole = [self.square(image, size) for image in whole]
            originals += whole
            seen += [image if side is None else resize(image, side) for image, side in zip(whole, sides, strict=True)]
        return Prediction(self, seen, originals)

    def square(self, image: Tensor, size: int | None = None) -> Tensor:
        """What the model sees of an image with ``crop=True``, ``(3, size, size)`` uint8."""
        if image.shape[0] != 3:
            raise ValueError(f"expected images of 3 channels to crop, got shape {tuple(image.shape)}; crop=False takes "
                             "the whole image")
        return central_square(quantize(image[None])[0], size or self.size, self.model.config.eval_crop)

    def __repr__(self) -> str:
        return f"Predictor({self.name}, {self.model.config.tokenizer} tokens, {self.size} px, {self.device})"


class Prediction:
    """The result of one pass over some images, and every answer that builds on it.

    τ and φ run when it is made. Classes cost what ``model(images)`` costs. The first answer that needs more than logits
    runs one pass that keeps what each layer computed, for all others; answers that need gradients run one more, once.
    On a CPU each image runs alone, so its answers are the same to the last bit in any batch.

    Args:
        predictor: the model.
        images: ``(C, h, w)`` each, as the model sees them.
        originals: ``(C, H, W)`` each, at whose pixels maps come back (default: ``images``).

    Attributes:
        sizes: height and width of each image's maps.
        partition: the regions of the images as the model saw them.

    Example:
        >>> import spit
        >>> from skimage.data import chelsea
        >>> prediction = spit.load("spit_tiny_16", device="cpu")(chelsea(), crop=False)
        >>> prediction.segment().mask.shape
        torch.Size([1, 300, 451])
        >>> prediction.explain("relevance", target="tabby").shape
        torch.Size([1, 300, 451])
    """

    def __init__(self, predictor: Predictor, images: Sequence[Tensor],
                 originals: Sequence[Tensor] | None = None) -> None:
        model = predictor.model
        self.predictor = predictor
        self.images = [image.to(predictor.device) for image in images]
        self.originals = list(self.images if originals is None else originals)
        self.sizes = [tuple(image.shape[1:]) for image in self.originals]
        self.views: dict[str, Prediction] = {}
        with torch.no_grad():
            self.partition, features = model.tokenize(self.images)
        # Queries, keys, values, attention's answer and output: 5 rows a token and layer.
        keep = 5 * model.config.width * model.config.depth * len(features.values) <= KEPT
        if predictor.device.type in ALONE:
            self.passes = [ForwardPass(model, [image], self.partition[index],
                                       Tokens(rows, torch.tensor([0, len(rows)])), keep)
                           for index, (image, rows) in enumerate(zip(self.images, features, strict=True))]
        else:
            self.passes = [ForwardPass(model, self.images, self.partition, features, keep)]

    @cached_property
    def logits(self) -> Tensor:
        """``(B, num_classes)``."""
        return torch.cat(each_alone(attrgetter("logits"), self.passes))

    @cached_property
    def probabilities(self) -> Tensor:
        """Softmax of the logits, ``(B, num_classes)`` float32."""
        return self.logits.float().softmax(1)

    @cached_property
    def class_token(self) -> Tensor:
        """The class token of each image after the final norm, ``(B, D)``."""
        return torch.cat(each_alone(attrgetter("class_token"), self.passes))

    @cached_property
    def tokens(self) -> Tokens:
        """The other tokens after the final norm, ``(ΣN, D)``; row v belongs to region v of the partition."""
        return Tokens.cat(each_alone(attrgetter("tokens"), self.passes))

    def top(self, count: int = 5) -> list[list[Guess]]:
        """The likeliest classes, a list ``[Guess(name, probability), …]`` for each image.

        It is nested for a single image too: ``prediction.top(5)[0]``. :mod:`spit.runtime` answers for one image at a
        time, with a flat list.
        """
        from spit.answers.classify import Classify  # which, as the other questions, imports this module

        return [[Guess(one.name, one.probability) for one in ranking] for ranking in Classify(count).of(self)]

    def top_classes(self, count: int = 5) -> Tensor:
        """The indices of the likeliest classes, ``(B, count)``; all classes if there are fewer."""
        self.predictor.expect_classes()
        if type(count) is not int or count < 1:
            raise ValueError(f"expected a number of classes of 1 or more, got {count!r}")
        return self.probabilities.topk(min(count, self.probabilities.shape[1]), dim=1).indices

    def features(self) -> Maps:
        """The final tokens painted on the pixels, ``(B, H, W, D)``, or one ``(H, W, D)`` an image if sizes differ."""
        return self.paint(self.tokens.values)

    def paint(self, values: Tensor) -> Maps:
        """Values of the tokens, ``(ΣN, …)``, painted on the pixels, ``(B, H, W, …)``, without interpolation."""
        return self.join(list(self.partition.paint(values)))

    def join(self, maps: Sequence[Tensor]) -> Maps:
        """Maps of the images as seen, brought to :attr:`sizes` by the nearest pixel."""
        return stack([at_size(one, size) for one, size in zip(maps, self.sizes, strict=True)])

    def explain(self, method: "str | Method" = "relevance", target: "Target" = None) -> Maps:
        """Which pixels the prediction rests on; see :func:`spit.explain` for method and target."""
        from spit.answers.explain import Explain

        return Explain(method, target).of(self)

    def segment(self, **options: Any) -> "Segmentation":
        """The salient object of each image; see :func:`spit.segment`, whose options these are.

        Half of the tokens join inside f, in a pass of its own that is kept; ``merge=False`` reads the tokens of this
        prediction.
        """
        from spit.answers.segment import Segment

        if not options.keys().isdisjoint(("crop", "size")):
            raise TypeError("expected crop and size where the prediction is made, as in predictor(images, crop=False)")
        return Segment.from_dict(options, "option of segment").of(self)

    def with_tokenizer(self, tokenizer: Any, **options: Any) -> "Prediction":
        """The same images and weights on other tokens; one more pass."""
        return Prediction(self.predictor.with_tokenizer(tokenizer, **options), self.images, self.originals)

    def with_backbone(self, name: str, **options: Any) -> "Prediction":
        """The same tokens and weights in another f, see :meth:`spit.SpitModel.with_backbone`; kept for later calls."""
        key = f"{name} {options}"
        if key not in self.views:
            predictor = self.predictor.with_backbone(name, **options)
            view = self.views[key] = Prediction.__new__(Prediction)  # images are not tokenized again
            vars(view).update({field: vars(self)[field] for field in ("images", "originals", "sizes", "partition")},
                              predictor=predictor, views={},
                              passes=[one.with_model(predictor.model) for one in self.passes])
        return self.views[key]

    def show(self, index: int = 0) -> "Picture":
        """One image with the outlines of its tokens; a notebook shows it."""
        if not 0 <= index < len(self):
            raise IndexError(f"expected an image from 0 to {len(self) - 1}, got {index}")
        return draw_overlay(self.images[index].cpu(), self.partition[index].to("cpu"))

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        knows = self.predictor.model.config.num_classes > 0
        captions = [f"{name}, {chance:.1%}" for [(name, chance)] in self.top(1)] if knows else [""] * len(self)
        return prediction_png(self.images, self.partition, captions)

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"Prediction({self.predictor.name}, {self.partition!r})"


def shorter_side(image: Tensor) -> int | None:
    """The shorter side at which an image, ``(C, H, W)``, has 512 × 512 pixels; None if it does not have more."""
    pixels = image.shape[1:].numel()
    return max(1, int(min(image.shape[1:]) * (SEEN / pixels) ** 0.5)) if pixels > SEEN else None


def resize(image: Tensor, size: int) -> Tensor:
    """The shorter side made ``size``, bilinear with antialiasing, in float32; the image itself if it has that size."""
    height, width = image.shape[1:]
    scaled = [max(1, round(side * size / min(height, width))) for side in (height, width)]
    if scaled == [height, width]:
        return image
    return F.interpolate(to_float(image[None]), scaled, mode="bilinear", antialias=True).clamp(0, 1)[0]


def at_most(image: Tensor, side: int) -> Tensor:
    """An image, ``(C, H, W)`` uint8, made smaller if its longer side exceeds ``side``, as the service does."""
    shorter, longer = sorted(image.shape[1:])
    if longer <= side:
        return image
    return quantize(resize(image, max(1, round(shorter * side / longer)))[None])[0]


def at_size(found: Tensor, size: tuple[int, ...]) -> Tensor:
    """A map ``(h, w, …)`` at another size: each pixel takes the value that its centre lies on."""
    for axis, (wanted, present) in enumerate(zip(size, found.shape[:2], strict=True)):
        if wanted != present:
            places = (2 * torch.arange(wanted, device=found.device) + 1) * present // (2 * wanted)
            found = found.index_select(axis, places)
    return found


def _name_of(path: Path) -> str:
    """A file without its suffix, a folder's own name, and for ``runs/mine/model``, which spit train writes, mine."""
    if path.is_file():
        return path.stem
    return path.resolve().parent.name if path.is_dir() and path.name == "model" else path.name


def stack(maps: Sequence[Tensor]) -> Maps:
    """One tensor if all maps have the same shape, else a tuple."""
    return torch.stack(list(maps)) if len({one.shape for one in maps}) == 1 else tuple(maps)


def _tensors(item: Any) -> list[Tensor]:
    """Images of any kind as ``(C, H, W)`` tensors."""
    if isinstance(item, str | PathLike):
        return [load_image(item)]
    if isinstance(item, Picture):
        item = to_rgb(item)
    if isinstance(item, np.ndarray) and item.ndim == 4:
        return [image for one in item for image in _tensors(one)]
    if isinstance(item, np.ndarray) and (item.dtype == np.uint8 or np.issubdtype(item.dtype, np.floating)):
        colors = item[:, :, None] if item.ndim == 2 else item
        if colors.ndim == 3 and colors.shape[2] in (1, 3):
            colors = np.ascontiguousarray(colors)  # torch takes no negative strides, as of an image turned round
            return [torch.tensor(colors, dtype=None if item.dtype == np.uint8 else torch.float32).movedim(-1, 0)
                    .expand(3, -1, -1)]
    if isinstance(item, np.ndarray):
        raise TypeError("expected arrays of shape (H, W), (H, W, 3) or (B, H, W, 3), uint8 or floats in [0, 1], got "
                        f"{item.dtype} of shape {item.shape}; {conversion(item)}")
    if not isinstance(item, Tensor):
        raise TypeError("expected a path, a PIL image, an array or a tensor, or a list of them, got "
                        f"{type(item).__name__}; {conversion(item)}")
    item = item.detach().clone()  # answers may read the pixels after the caller has changed them
    return list(item) if item.ndim == 4 else [item]


def _check(model: SpitModel, size: int | None) -> None:
    if model.training:
        raise ValueError("expected a model in evaluation mode, since training drops tokens and layers at random; call "
                         "model.eval()")
    if size is not None and (type(size) is not int or not 1 <= size <= LARGEST):
        raise ValueError(f"expected a size of 1 to {LARGEST:,} pixels, got {size!r}")
