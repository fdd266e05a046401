"""ForwardPass: what one pass of a model over some images computed, kept for the answers that need more than logits."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from spit.backbone import Heads, Recorder, Spans
from spit.embedder import take_class_token
from spit.model import SpitModel
from spit.partition import Partition
from spit.tokens import Tokens


class Trace(NamedTuple):
    """What every layer computed: its heads, the tokens that leave it, and the layout of their rows."""

    heads: list[Heads]
    outputs: list[Tensor]
    spans: Spans


class Differentiable(NamedTuple):
    """Logits with their graph back to the attention of every layer."""

    logits: Tensor
    heads: list[Heads]
    spans: Spans


@dataclass(eq=False)
class ForwardPass:
    """One pass of a model over some images.

    τ and φ run once. What attention computed is kept if ``kept`` says so; otherwise it is computed again when
    :meth:`trace` is called. The pass with gradients starts at φ's features and runs when first asked for.

    Shape:
        images ``(3, h, w)`` each, features and tokens ``(ΣN, …)``, logits ``(B, num_classes)``, class_token ``(B, D)``.
    """

    model: SpitModel
    images: tuple[Tensor, ...]
    partition: Partition
    features: Tokens
    logits: Tensor
    class_token: Tensor
    tokens: Tokens
    kept: Trace | None = None
    _differentiable: Differentiable | None = field(default=None, repr=False)

    @staticmethod
    @torch.no_grad()
    def of(model: SpitModel, images: Sequence[Tensor], partition: Partition, features: Tokens,
           keep: bool) -> "ForwardPass":
        """Run γ, f and h on features that τ and φ made."""
        if keep and model.backbone.compiled is None:  # compiled code reports nothing
            answer, kept = _traced(model, features)
        else:
            answer, kept = model.run(features), None
        return ForwardPass(model, tuple(images), partition, features, *answer, kept)

    def trace(self) -> Trace:
        """What every layer computed."""
        with torch.no_grad():
            trace = self.kept or _traced(self.model, self.features)[1]
        if trace is None:
            raise _unseen()
        return trace

    def differentiable(self) -> Differentiable:
        """Logits with their graph, from one more pass of f; computed once."""
        if self._differentiable is None:
            model = self.model if self.model.backbone.compiled is None else self.model.view()
            layers: list[Heads] = []
            seen: list[Spans] = []

            def observe(layer: int, spans: Spans, heads: Heads) -> None:
                if not heads.answer.requires_grad:  # with frozen parameters the graph starts here
                    heads.answer.requires_grad_()
                layers.append(heads)
                seen.append(spans)

            with torch.inference_mode(False), torch.enable_grad():
                values = self.features.values
                features = self.features.replace(values.clone() if values.is_inference() else values)
                logits = model.run(features, Recorder({}, observe=observe))[0]
            if not layers:
                raise _unseen()
            self._differentiable = Differentiable(logits, layers, seen[0])
        return self._differentiable

    def layer_tokens(self, layer: int) -> Tokens:
        """The tokens that leave a layer, through the final norm, without the class token."""
        if layer == self.model.config.depth - 1:
            return self.tokens
        trace = self.trace()
        rows = Tokens(self.model.backbone.norm(trace.outputs[layer]), trace.spans.offsets.long())
        return take_class_token(rows)[1]

    def layer_keys(self, layer: int) -> Tokens:
        """The keys that a layer's attention compares, all heads side by side, without the class token."""
        trace = self.trace()
        return take_class_token(Tokens(trace.heads[layer].key.flatten(1), trace.spans.offsets.long()))[1]

    def paint(self, values: Tensor) -> list[Tensor]:
        """One ``(h, w, …)`` map an image from a value for each token."""
        return list(self.partition.paint(values))

    def paint_rows(self, rows: Tensor) -> list[Tensor]:
        """Maps from ``(B, L)`` rows that start with the class token's value and are padded to the longest image."""
        image_of = self.tokens.image_of
        place = torch.arange(len(image_of), device=rows.device) - self.tokens.offsets[image_of]
        return self.paint(rows[image_of, place + 1])


def _traced(model: SpitModel, features: Tokens) -> tuple[tuple[Tensor, Tensor, Tokens], Trace | None]:
    """Run γ, f and h, and keep what every layer computes; None if the backbone does not report it."""
    heads: list[Heads] = []
    spans: list[Spans] = []

    def observe(layer: int, own: Spans, found: Heads) -> None:
        heads.append(found)
        spans.append(own)

    recorder = Recorder({"features": range(model.config.depth)}, observe=observe)
    answer = model.run(features, recorder)
    outputs = [recorder.features[layer].values for layer in sorted(recorder.features)]
    return answer, Trace(heads, outputs, spans[0]) if heads else None


def _unseen() -> ValueError:
    return ValueError("the model's backbone does not report its attention to the recorder; use a method that does not "
                      "need it (prototype, lime)")
