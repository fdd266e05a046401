"""ModelConfig: everything that makes a model, short of its weights."""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any


@dataclass(frozen=True)
class ModelConfig:
    """One model of the framework ``Φ = h ∘ f ∘ γ ∘ φ ∘ τ``.

    Attributes:
        tokenizer: τ, a name that :func:`spit.tokenizers.create_tokenizer` knows.
        tokenizer_options: what τ is made with.
        channels, resolution, position_bins, position_sigma, gradients, gradient_bins, gradient_sigma,
            normalization, fill: φ, see :class:`spit.features.FeatureExtractor`.
        width, depth, heads, mlp_ratio, qkv_bias, layer_scale, drop_path: γ and f, see
            :class:`spit.backbone.Transformer`.
        token_budget: tokens an image keeps at most, in training only; None for all.
        num_classes: h; 0 gives the class token instead of logits.
        class_names: one for each class; () where they are not known.
        image_size: side of the squares that the model learnt from; None where it is not known.
    """

    tokenizer: str = "superpixel"
    tokenizer_options: Mapping[str, Any] = field(default_factory=dict)
    channels: int = 3
    resolution: int = 16
    position_bins: int = 16
    position_sigma: float = 0.025
    gradients: bool = True
    gradient_bins: int = 16
    gradient_sigma: float = 0.025
    normalization: str = "contrast"
    fill: str = "zero"
    width: int = 192
    depth: int = 12
    heads: int = 3
    mlp_ratio: float = 4.0
    qkv_bias: bool = False
    layer_scale: float | None = 1e-5
    drop_path: float = 0.0
    token_budget: int | None = 256
    num_classes: int = 1000
    class_names: tuple[str, ...] = ()
    image_size: int | None = None

    def __post_init__(self) -> None:
        for name in ("channels", "resolution", "position_bins", "gradient_bins", "width", "depth", "heads"):
            self._check(name, int, 1)
        self._check("num_classes", int, 0)
        for name in ("position_sigma", "gradient_sigma", "mlp_ratio", "drop_path"):
            self._check(name, float, 0)
        for name in ("gradients", "qkv_bias"):
            self._check(name, bool)
        for name in ("tokenizer", "normalization", "fill"):
            self._check(name, str)
        if self.token_budget is not None:
            self._check("token_budget", int, 1)
        if self.layer_scale is not None:
            self._check("layer_scale", float)
        if self.image_size is not None:
            self._check("image_size", int, 1)
        self._check("tokenizer_options", Mapping)
        self._check("class_names", tuple)
        if not all(isinstance(name, str) for name in self.class_names):
            raise TypeError(f"expected class_names of type str, got {self.class_names!r}")
        if self.class_names and len(self.class_names) != self.num_classes:
            raise ValueError(f"expected class_names for {self.num_classes} classes, got {len(self.class_names)}")
        if self.drop_path >= 1:
            raise ValueError(f"expected drop_path below 1, got {self.drop_path}")
        if self.width % self.heads:
            raise ValueError(f"expected a width that heads divide, got width={self.width} and heads={self.heads}")

    def replace(self, **changes: Any) -> "ModelConfig":
        """The same config with some fields changed; an unknown field raises and names the nearest.

        Another number of classes leaves the present class names behind.
        """
        _refuse_unknown(changes)
        if changes.get("num_classes", self.num_classes) != self.num_classes:
            changes.setdefault("class_names", ())
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON has them, without class_names and image_size where they are not known."""
        values = {**asdict(self), "tokenizer_options": dict(self.tokenizer_options),
                  "class_names": list(self.class_names)}
        # Left out, so that a model without them is described as ever, and evaluations of it go on where they were.
        return {name: value for name, value in values.items() if value or name not in ("class_names", "image_size")}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "ModelConfig":
        """The inverse of :meth:`to_dict`; fields left out take their defaults.

        Raises:
            ValueError: an unknown field (the nearest known one is named), or a value out of range.
            TypeError: a value of another type.
        """
        _refuse_unknown(values)
        given = {**values}
        if isinstance(given.get("class_names"), list):
            given["class_names"] = tuple(given["class_names"])
        return ModelConfig(**given)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    @staticmethod
    def from_json(text: str) -> "ModelConfig":
        return ModelConfig.from_dict(json.loads(text))

    def _check(self, name: str, kind: type[Any], least: float | None = None) -> None:
        value: Any = getattr(self, name)
        accepted = isinstance(value, (int, float) if kind is float else kind)
        if not accepted or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"expected {name} of type {kind.__name__}, got {value!r}")
        if least is not None and not value >= least:
            raise ValueError(f"expected {name} of at least {least}, got {value}")


def _refuse_unknown(names: Iterable[str]) -> None:
    known = [field.name for field in fields(ModelConfig)]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0)
            raise ValueError(f"unknown model option {name!r}; the nearest known one is {near[0]!r}")
