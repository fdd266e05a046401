"""The parts that a model is put together from, by name: tokenizers τ, features φ and backbones f.

spit registers its own parts here. Yours join them with :func:`spit.register_tokenizer`,
:func:`spit.register_features` and :func:`spit.register_backbone`; then ``create_model``, ``with_tokenizer``, recipes,
saved models and the commands know them by name. docs/tutorials/your-own-tokenizer.md is the guide.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from spit.options import Options, check_choice, refuse_unknown
from spit.partition import Partition
from spit.tokens import Tokens
from spit.wording import plural

IMPORT_FIRST = "import the module that registers it first, or on the command line give spit --plugin MODULE"


class Parts(Mapping[str, type[Any]]):
    """Classes of one kind by name.

    Args:
        kind: what they are, for messages.
        check: raises TypeError if a class is no such part.
        modules: for a name the module of spit that registers it, imported when the name is first looked up.
    """

    def __init__(self, kind: str, check: Callable[[type[Any]], None], modules: Mapping[str, str]) -> None:
        self.kind = kind
        self._check = check
        self._modules = modules
        self._classes: dict[str, type[Any]] = {}

    def __getitem__(self, name: str) -> type[Any]:
        if name in self._modules and name not in self._classes:
            import_module(self._modules[name])
        return self._classes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules or name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter({**self._modules, **self._classes})

    def __len__(self) -> int:
        return len({*self._modules, *self._classes})

    def register(self, name: str, cls: type[Any]) -> type[Any]:
        """Add a class under a name, and return it. A module may be imported twice: its classes replace themselves."""
        if not isinstance(cls, type):
            raise TypeError(f"expected a class to register as {self.kind} {name!r}, got {cls!r}")
        self._check(cls)
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"expected a name of letters, digits and underscores for a {self.kind}, got {name!r}")
        if not cls.__module__.startswith(self._modules.get(name, "")):
            raise ValueError(f"{self.kind} {name!r} is spit's own; register yours under another name")
        known = self._classes.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"{self.kind} {name!r} is {known.__module__}.{known.__qualname__} already; "
                             "register yours under another name")
        self._classes[name] = cls
        return cls

    def create(self, name: str, options: Mapping[str, Any], shared: Mapping[str, Any] | None = None) -> Any:
        """An instance of the class of that name.

        Args:
            options: of its constructor.
            shared: options of the whole model; the constructor gets those that it names.
        """
        check_choice(self.kind, name, self, hint=f"if it is your own, {IMPORT_FIRST}")
        known = inspect.signature(self[name]).parameters
        refuse_unknown(options, [one for one in known if one != "options"],  # the whole config, which no user gives
                       f"option of {self.kind} {name!r}:")
        given = {key: value for key, value in (shared or {}).items() if key in known} | dict(options)
        cls = self[name]
        return cls.from_dict(given) if issubclass(cls, Options) else cls(**given)  # JSON has lists in place of tuples

    def name_of(self, part: object) -> str | None:
        """The name that an object's class is registered under; None if it is not."""
        return next((name for name, cls in self._classes.items() if type(part) is cls), None)


def check_partition(partition: object, blocks: Sequence[Tensor], hint: str) -> None:
    """Raise TypeError or ValueError if this is not the partition of these blocks of images."""
    if not isinstance(partition, Partition):
        raise TypeError(f"expected a spit.Partition, got {type(partition).__name__}; {hint}")
    images = sum(len(block) for block in blocks)
    if images != len(partition):
        raise ValueError(f"expected the partition of {plural(images, 'image')}, got one of {len(partition)}; {hint}")
    if partition.offsets.device != blocks[0].device:
        raise ValueError(f"expected a partition on {blocks[0].device}, where the images are, got "
                         f"{partition.offsets.device}; {hint}")
    shapes, labelled = ([(len(block), block.shape[-2:]) for block in part] for part in (blocks, partition.blocks))
    if shapes == labelled:  # else image by image, since they may be in other blocks
        return
    sizes, found = ([size for count, size in part for _ in range(count)] for part in (shapes, labelled))
    for index, (size, got) in enumerate(zip(sizes, found, strict=True)):
        if size != got:
            raise ValueError(f"expected labels of {size[0]}×{size[1]} for image {index}, got {got[0]}×{got[1]}; {hint}")


def check_tokens(tokens: object, offsets: Tensor, width: int, hint: str) -> None:
    """Raise TypeError or ValueError if these are not Tokens of that width with these offsets."""
    if not isinstance(tokens, Tokens):
        raise TypeError(f"expected spit.Tokens, got {type(tokens).__name__}; {hint}")
    same = tokens.offsets is offsets or torch.equal(tokens.offsets.to(offsets), offsets)
    if not same or tokens.values.shape != (int(offsets[-1]), width):
        raise ValueError(f"expected Tokens of {offsets.diff().tolist()} rows an image and width {width}, got "
                         f"{tokens.counts.tolist()} rows and values of shape {tuple(tokens.values.shape)}; {hint}")


def _check_tokenizer(cls: type[Any]) -> None:
    from spit.tokenizers.base import Tokenizer  # which needs this module

    if not issubclass(cls, Tokenizer) or inspect.isabstract(cls) or "__dataclass_params__" not in vars(cls):
        raise TypeError(f"expected a class that derives from spit.Tokenizer, is decorated with @dataclass(frozen=True) "
                        f"and has partition(self, block), which returns the Partition of a (B, C, H, W) tensor; "
                        f"got {cls.__name__}")


def _check_features(cls: type[Any]) -> None:
    if "__call__" not in dir(cls):
        raise TypeError(f"expected a class with __call__(self, images, partition), which returns Tokens, and a width, "
                        f"the number of features of a token; got {cls.__name__}")


def _check_backbone(cls: type[Any]) -> None:
    options = set(inspect.signature(cls).parameters) if issubclass(cls, nn.Module) else set()
    if not options & {"width", "options", "seam"}:
        raise TypeError(f"expected a torch.nn.Module whose constructor takes width, with forward(self, tokens, "
                        f"recorder=None), which returns Tokens of that width; got {cls.__name__}")


TOKENIZERS = Parts("tokenizer", _check_tokenizer, {
    "patch": "spit.tokenizers", "voronoi": "spit.tokenizers", "superpixel": "spit.tokenizers",
    "published": "spit.interop.published.tokenizers", "published_voronoi": "spit.interop.published.tokenizers"})
FEATURES = Parts("features", _check_features, {
    "interpolating": "spit.features", "crops": "spit.seams.crops",
    "published": "spit.interop.published.features"})
BACKBONES = Parts("backbone", _check_backbone, {
    "transformer": "spit.backbone", "merging": "spit.backbone", "wrapped": "spit.seams.model"})


def register_tokenizer(name: str, cls: type[Any]) -> type[Any]:
    """Make a tokenizer τ known by name.

    Args:
        name: for ``create_model``, ``with_tokenizer``, recipes and ``--tokenizer``.
        cls: a frozen dataclass that derives from :class:`spit.Tokenizer`. Its fields are its options, and
            ``partition(self, block)`` returns the :class:`spit.Partition` of a ``(B, C, H, W)`` block.

    Example:
        >>> from dataclasses import dataclass
        >>> import spit, torch
        >>> @dataclass(frozen=True)
        ... class Rows(spit.Tokenizer):
        ...     height: int = 16
        ...     def partition(self, block):
        ...         row = torch.arange(block.shape[2])[:, None] // self.height
        ...         return spit.Partition.from_labels(row.expand(len(block), *block.shape[2:]))
        >>> _ = spit.register_tokenizer("rows", Rows)
        >>> spit.create_tokenizer("rows", height=8)(torch.zeros(1, 3, 32, 32)).counts
        tensor([4])
    """
    return TOKENIZERS.register(name, cls)


def register_features(name: str, cls: type[Any]) -> type[Any]:
    """Make a feature extractor φ known by name, for ``ModelConfig(extractor=name, extractor_options={…})``.

    Args:
        cls: its constructor takes the options, and the fields of :class:`spit.ModelConfig` that it names, such as
            ``channels``. ``width`` is the number of features of a token, and ``__call__(self, images, partition)``
            returns :class:`spit.Tokens` of that width, one row per region; ``images`` are ``(B, C, H, W)`` blocks of
            one size. It may be a ``torch.nn.Module``.

    Example:
        >>> import spit, torch
        >>> from spit.images import to_float
        >>> class MeanColor:
        ...     width = 3
        ...     def __call__(self, images, partition):
        ...         sizes = partition.sizes()
        ...         rows = partition.paint(torch.arange(len(sizes)))  # the row of each pixel
        ...         rows = torch.cat([image.flatten() for image in rows])
        ...         colors = torch.cat([image.flatten(1).T for block in images for image in to_float(block)])
        ...         sums = torch.zeros(len(sizes), 3).index_add(0, rows, colors)
        ...         return spit.Tokens(sums / sizes[:, None], partition.offsets)
        >>> _ = spit.register_features("mean_color", MeanColor)
        >>> model = spit.create_model("spit_tiny_16", extractor="mean_color", num_classes=10)
        >>> model([torch.rand(3, 64, 64), torch.rand(3, 48, 80)]).shape
        torch.Size([2, 10])
    """
    return FEATURES.register(name, cls)


def register_backbone(name: str, cls: type[Any]) -> type[Any]:
    """Make a backbone f known by name, for ``ModelConfig(backbone=name, backbone_options={…})``.

    Args:
        cls: a ``torch.nn.Module``. Its constructor takes its options, and ``width`` and the other fields of
            :class:`spit.ModelConfig` that it names, such as ``depth``. ``forward(tokens, recorder=None)`` maps
            :class:`spit.Tokens`, the class token first in each image, to Tokens of that width.

    Example:
        >>> import spit, torch
        >>> class Mixer(torch.nn.Module):
        ...     def __init__(self, width, hidden=64):
        ...         super().__init__()
        ...         self.mlp = torch.nn.Sequential(torch.nn.Linear(width, hidden), torch.nn.GELU(),
        ...                                        torch.nn.Linear(hidden, width))
        ...     def forward(self, tokens, recorder=None):
        ...         return tokens.replace(tokens.values + self.mlp(tokens.values))
        >>> _ = spit.register_backbone("mixer", Mixer)
        >>> model = spit.create_model("spit_tiny_16", backbone="mixer", backbone_options={"hidden": 32})
        >>> model(torch.rand(1, 3, 64, 64)).shape
        torch.Size([1, 1000])
    """
    return BACKBONES.register(name, cls)
