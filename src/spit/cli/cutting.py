"""The options of the verbs that cut tokens into foreground and background, and the models they run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spit.cli.options import TokenizerOptions

if TYPE_CHECKING:
    from spit.model import SpitModel
    from spit.segmentation.cut import Cut


def _option(name: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(name, help=text, metavar=metavar, show_default=False, rich_help_panel="Cut")


@dataclass(frozen=True)
class Cutting:
    """How tokens are cut; what is left out is :class:`spit.segmentation.Cut`'s own."""

    tau: Annotated[float | None, _option(
        "--tau", "Cosine above which two tokens are joined, 1/3 in the paper; by the image's own unless told.")] = None
    cut_on: Annotated[str | None, _option(
        "--cut-on", "The layer's tokens, or the keys that its attention compares; tokens unless told.",
        "tokens|keys")] = None
    layer: Annotated[int | None, _option("--layer", "Which layer's, -1 the last, as it is unless told.")] = None
    foreground: Annotated[str | None, _option(
        "--foreground", "Which side it is: the one with less of the border, by class tokens of the masked images (the "
                        "paper), or the largest entry's (TokenCut); border unless told.",
        "border|class_token|largest")] = None
    size: Annotated[int | None, _option(
        "--size", "Shorter side that the model sees; the image's own unless told.")] = None
    scales: Annotated[int | None, _option(
        "--scales", "Levels of the hierarchy that are cut and averaged, from the model's own to finer ones; 2 finds a "
                    "little more in five times the time; 1 unless told.")] = None
    filter: Annotated[str | None, _option(
        "--filter", "Smooth the soft map along edges after the cut; none unless told.", "guided")] = None

    def cut(self, **base: Any) -> "Cut":
        """The cut that was asked for; ``base`` has other defaults."""
        from spit.segmentation.cut import FEATURES, FILTERS, Cut, check_choice

        for option, value, known in (("--cut-on", self.cut_on, FEATURES), ("--filter", self.filter, FILTERS)):
            if value is not None:
                check_choice(option, value, known)  # here the options have names of their own
        given = {"tau": self.tau, "features": self.cut_on, "layer": self.layer, "foreground": self.foreground,
                 "size": self.size, "scales": self.scales, "refine": self.filter}
        return Cut(**{**base, **{name: value for name, value in given.items() if value is not None}})


def load_model(source: str | None, name: str | None, options: TokenizerOptions, device: str) -> "SpitModel":
    """The model that ``--weights``, ``--model`` and the tokenizer's options ask for; it need not know classes."""
    from spit.cli.models import load_source

    return with_options(load_source(source, name), options).to(device).eval()


def with_options(model: "SpitModel", options: TokenizerOptions) -> "SpitModel":
    """The model with the tokenizer that was asked for, where one was."""
    if not options.anything:
        return model
    own = model.config
    return model.with_tokenizer(options.build(own.tokenizer, dict(own.tokenizer_options)))
