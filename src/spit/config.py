"""ModelConfig: everything that makes a model, except its weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from spit.backbone import TransformerOptions
from spit.features import FeatureOptions
from spit.kernels.options import compact_options
from spit.options import documented, option
from spit.parts import BACKBONES, FEATURES

NO_PRESET = ("the authors' release has parts of its own: give tokenizer='published' and extractor='published' in place "
             "of preset='published' (docs/published.md)")
KNOWN_LATER = ("class_names", "train_size", "eval_size", "extractor_options", "backbone_options")


@documented
@dataclass(frozen=True)
class ModelConfig(TransformerOptions, FeatureOptions):
    """One model of the framework ``Φ = h ∘ f ∘ γ ∘ φ ∘ τ``.

    Example:
        >>> import spit
        >>> config = spit.ModelConfig(tokenizer="patch", tokenizer_options={"size": 8}, depth=2, num_classes=10)
        >>> model = spit.SpitModel(config)
        >>> spit.ModelConfig.from_dict(config.to_dict()) == config
        True
    """

    tokenizer: str = option("superpixel", "τ: patch, voronoi, superpixel, or a name given to register_tokenizer")
    tokenizer_options: Mapping[str, Any] = option(dict, "Options of τ")
    extractor: str = option("interpolating", "φ: interpolating, or a name given to register_features")
    extractor_options: Mapping[str, Any] = option(dict, "Options of a registered φ")
    backbone: str = option("transformer", "f: transformer, merging, or a name given to register_backbone")
    backbone_options: Mapping[str, Any] = option(dict, "Options of a registered f")
    token_budget: int | None = option(256, "In training, keep at most this many random tokens of an image", least=1)
    num_classes: int = option(1000, "Logits of h; 0 returns the class token instead", least=0, most=2**24)
    class_names: tuple[str, ...] = option((), "Names of the classes, if known")
    train_size: int | None = option(None, "Side of the squares that the model was trained on, if known", least=1,
                                    most=2**14)
    eval_size: int | None = option(None, "Side of the square that the model is asked at, if known", least=1, most=2**14)
    eval_crop: float | None = option(
        0.875, "Share of the resized short side that the square takes at evaluation; none rescales the whole image to "
               "the square", above=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.class_names and len(self.class_names) != self.num_classes:
            raise ValueError(f"expected class_names for {self.num_classes} classes, got {len(self.class_names)}")

    def replace(self, **changes: Any) -> Self:
        """The same config with some options changed.

        Another number of classes drops the class names. Options of the present tokenizer are merged; another tokenizer
        starts from its own defaults.
        """
        if "preset" in changes:
            raise ValueError(NO_PRESET)
        name = changes.get("tokenizer", self.tokenizer)
        if name != self.tokenizer or "tokenizer_options" in changes:
            changes["tokenizer_options"] = self.options_for(name, changes.get("tokenizer_options", {}))
        if changes.get("num_classes", self.num_classes) != self.num_classes:
            changes.setdefault("class_names", ())
        return super().replace(**changes)

    def options_for(self, tokenizer: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Options of a tokenizer: this config's with changes if it is the present one, else the changes alone.

        Weights that know square patches, in crops, get patches of their own size and compact superpixels.
        """
        if not isinstance(changes, Mapping):
            raise TypeError(f"expected tokenizer_options as a table, such as {{'levels': 4}}, got {changes!r}")
        present: Mapping[str, Any] = self.tokenizer_options if tokenizer == self.tokenizer else {}
        if tokenizer != self.tokenizer and (self.fill == "crop" or self.extractor == "crops"):  # weights know squares
            side = self.extractor_options.get("patch", self.resolution)
            present = {"superpixel": compact_options(side), "patch": {"size": side}}.get(tokenizer, {})
        return {**present, **changes}

    def to_dict(self) -> dict[str, Any]:
        """The options as JSON has them, without those that are not known."""
        return {name: value for name, value in super().to_dict().items() if value or name not in KNOWN_LATER}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], what: str = "model option") -> Self:
        """The inverse of :meth:`to_dict`. Options left out take their defaults."""
        given = _without_preset(values)
        if "image_size" in given:  # versions before 0.2 had one size for both
            size = given.pop("image_size")
            given = {"train_size": size, "eval_size": size, **given}
        return super().from_dict(given, what)

    def create_extractor(self) -> Any:
        """φ. Its constructor gets ``extractor_options``, and the options of this config that it names."""
        return FEATURES.create(self.extractor, self.extractor_options, vars(self))

    def create_backbone(self) -> Any:
        """f. Its constructor gets ``backbone_options``, and the options of this config that it names."""
        return BACKBONES.create(self.backbone, self.backbone_options, {**vars(self), "options": self})


def _without_preset(values: Mapping[str, Any]) -> dict[str, Any]:
    """A config as it is today: versions before 0.2 had the parts of the authors' release by an option ``preset``."""
    given = dict(values)
    if given.pop("preset", "spit") == "published":
        given["extractor"] = "published"
    options = given.get("tokenizer_options")
    if isinstance(options, Mapping) and "preset" in options:
        fixed = {"preset"}
        if options["preset"] == "published":
            fixed |= {"features", "similarity", "self_loop", "max_tokens"}
            given["tokenizer"] = "published_voronoi" if given.get("tokenizer") == "voronoi" else "published"
        given["tokenizer_options"] = {name: value for name, value in options.items() if name not in fixed}
    return given
