"""Segment: the salient object (§3.2, App. E)."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spit.answers.question import Question
from spit.options import documented, option
from spit.segmentation.options import TokenCut

if TYPE_CHECKING:
    from spit.model import SpitModel
    from spit.predictor import Prediction, Predictor, Sources
    from spit.segmentation.saliency import Segmentation

Seen = TypeVar("Seen", "Predictor", "Prediction")


@documented
@dataclass(frozen=True)
class Segment(TokenCut, Question):
    """What the salient object of an image is, and how it is cut out: the options of :func:`spit.segment`.

    Example:
        >>> from spit.answers import Segment
        >>> Segment(tau=1 / 3, foreground="class_token").layer  # as App. E
        -1
    """

    method: str | None = option(
        None, "What finds the foreground: head, a linear layer on tokens of several layers, trained without masks; "
              "cut, TokenCut; or both, their mean (default: both, or cut if the model has no head)",
        choices=("head", "cut", "both"))
    token_head: str | Path | None = option(
        None, "File of the head, from spit train-head (default: the one that comes with spit for the model's weights)",
        metavar="FILE")
    clean: bool = option(
        True, "Remove crumbs and holes by an energy on the graph of regions, solved exactly, and decide finer regions "
              "along the boundary; a mask of a reduced image then follows superpixels of the original")
    merge: bool = option(True, "Join half of the tokens with others like them, a third of the way through the "
                               "transformer: faster, with masks as good on average; single masks can differ")
    crop: bool = False
    size: int | None = None

    def joined(self, seen: Seen) -> Seen:
        """The predictor, or prediction, whose tokens are cut: with ``merge``, half of them join another inside f.

        This happens in the block after the first third (:class:`~spit.backbone.MergingTransformer`) and takes four
        fifths of the time on a CPU; masks are as good (docs/segmentation.md). Compiled models, registered backbones and
        cuts of keys compute all tokens.
        """
        from spit.backbone import Transformer
        from spit.predictor import Predictor

        model = seen.model if isinstance(seen, Predictor) else seen.predictor.model
        if not self.merge or model.compiled or not isinstance(model.backbone, Transformer) or self.cut_on == "keys":
            return seen
        depth = model.config.depth
        return seen.with_backbone("merging", at=[depth // 3], share=1 - (depth - depth // 3 - 0.5) / 2 / depth)

    def see(self, predictor: "Predictor", images: "Sources") -> "Prediction":
        """A prediction of images; their tokens join, so that no other pass is needed."""
        return super().see(self.joined(predictor), images)

    def of(self, prediction: "Prediction") -> "Segmentation":
        """The salient object of each image."""
        import torch

        from spit.segmentation.saliency import segment_prediction

        # Half precision is for the pass alone.
        with torch.no_grad(), torch.autocast(prediction.predictor.device.type, enabled=False):
            return segment_prediction(self.joined(prediction), self)

    def ask(self, predictor: "Predictor", images: "Sources") -> "Segmentation":
        """See images, and segment them. On a CPU each of a list is seen and cut alone, all of it on one thread.

        So threads do not wait for each other between the steps.
        """
        from spit.forward_pass import each_alone
        from spit.predictor import ALONE
        from spit.segmentation.saliency import Segmentation

        predictor = self.joined(predictor)
        if not isinstance(images, list | tuple) or len(images) < 2 or predictor.device.type not in ALONE:
            return self.of(self.see(predictor, images))
        return Segmentation.cat(each_alone(lambda image: self.of(self.see(predictor, image)), images))


def segment(model: "SpitModel | Predictor", images: "Sources", **options: Any) -> "Segmentation":
    """Find the salient object of each image: TokenCut on the model's own tokens, and a linear head on them.

    Tokens, except the class token, form a graph, joined where their cosine is above τ. Its normalised cut gives the
    Fiedler vector x; ``z = (x − mean) / std`` over the tokens, turned so that the foreground is positive, is painted on
    the regions without interpolation. The soft map is ``1 / (1 + e^(−2z))`` and the mask is where that exceeds 0.5. An
    image with nothing to cut, such as one superpixel, is 0.5 everywhere and has no foreground. With ``clean``, crumbs
    and holes go, and regions along the boundary are decided anew at finer levels (:mod:`spit.segmentation.cleaning`).

    A model with a token head (:class:`~spit.segmentation.TokenHead`; ``spit_tiny_16`` comes with one) scores each token
    by the mean of the cut's log-odds, 2z, and the head's, smoothed over the graph of regions; ``method`` chooses.

    Images above 512 × 512 pixels are reduced for the model; the mask comes back along superpixels of the original.

    ``model.with_tokenizer("superpixel", levels=3)`` cuts finer tokens.

    Args:
        model: in evaluation mode.
        images: what :class:`spit.Predictor` takes, whole, of any size; not modified.
        options: of :class:`~spit.answers.Segment`: ``merge=False`` computes all tokens, ``size`` is the shorter side
            that the model sees (default: the image's own, up to 512 × 512 pixels in all). Maps come back at the image's
            own pixels.

    Example:
        >>> import spit, torch
        >>> model = spit.create_model("spit_tiny_16", pretrained=True)
        >>> spit.segment(model, torch.rand(1, 3, 64, 48)).mask.shape
        torch.Size([1, 64, 48])
    """
    from spit.predictor import Predictor

    return Segment.from_dict(options, "option of segment").ask(Predictor.of(model), images)
