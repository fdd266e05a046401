"""Explain: which pixels a prediction rests on (§3.2, App. D)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spit.answers.question import Question
from spit.options import documented, option

if TYPE_CHECKING:
    from spit.attribution.methods import Method, Target
    from spit.model import SpitModel
    from spit.predictor import Maps, Prediction, Predictor, Sources


@documented
@dataclass(frozen=True)
class Explain(Question):
    """Which pixels a prediction rests on; by default those of the central square, which is what is classified."""

    method: Any = "relevance"  # a name or a Method
    target: str | Any | None = option(
        None, "Class to explain, by index or name (default: the predicted class); flow, rollout and random are the "
              "same for any class", metavar="CLASS")
    crop: bool = option(True, "See the central square, as classification does, or the whole image, as segmentation "
                              "does; the map of a whole image has its own size", flag="crop/--whole")
    size: int | None = None

    def of(self, prediction: "Prediction") -> "Maps":
        """One map for each image."""
        import torch

        from spit.attribution.methods import read_target, ready

        method = ready(self.method, prediction.predictor)
        if self.target is None and not method.of_class:
            classes = torch.zeros(len(prediction), dtype=torch.int64)  # unused; the model may have none
        else:
            classes = read_target(prediction, self.target)
        parts = classes.split([len(one.images) for one in prediction.passes])
        maps = [values for one, own in zip(prediction.passes, parts, strict=True) for values in method(one, own)]
        return prediction.join([values.to(torch.float32) for values in maps])


def explain(model: "SpitModel | Predictor", images: "Sources", method: "str | Method" = "relevance",
            target: "Target" = None, *, crop: bool = False) -> "Maps":
    """Which pixels a prediction rests on (§3.2, App. D).

    ============  ====================================================================  ===========
    method        a pixel's value                                                       of a class?
    ============  ====================================================================  ===========
    "relevance"   its token's share by attention times gradient                         yes
    "token_rise"  how much likelier the class is where its token is present             yes
    "lime"        the coefficient of its SLIC region in a linear model                  yes
    "prototype"   what its token adds to the class token towards the class's            yes
                  prototypes
    "flow"        its token's share of the class token's attention through the layers   no
    "rollout"     the same, by the mean over heads and half the residual                no
    "random"      a random value for its token, a control                               no
    ============  ====================================================================  ===========

    Values are comparable within a map; their scale has no meaning. Every pixel has the value of its token, or region,
    without interpolation. A map depends on its own image alone. For several maps of one image, call
    :meth:`spit.Prediction.explain`, which runs the model once.

    Args:
        model: in evaluation mode.
        images: what :class:`spit.Predictor` takes, of any size; not modified.
        method: a name, or a method with options, such as ``spit.attribution.Lime(samples=1000)`` or
            ``spit.attribution.PrototypeProjection("prototypes.safetensors")``.
        target: the class to explain, by index or name, one for all images or one for each (default: the predicted
            class).
        crop: explain the central square that ``predictor(images)`` classifies; maps are then of that square.

    Shape:
        ``(B, H, W)`` float32, or one ``(H, W)`` an image if sizes differ.

    Raises:
        MissingExtra: "lime" without captum or scikit-image.
        WeightsError: "prototype" for a model that has no prototypes yet.

    Example:
        >>> import spit, torch
        >>> model = spit.create_model("spit_tiny_16", pretrained=True)
        >>> spit.explain(model, torch.rand(1, 3, 64, 64), "relevance", target="tabby").shape
        torch.Size([1, 64, 64])
    """
    from spit.attribution.methods import ready
    from spit.predictor import Predictor

    predictor = Predictor.of(model)
    question = Explain(ready(method, predictor), target, crop)  # refuses an unknown method before the pass
    return question.of(question.see(predictor, images))
