"""ForwardPass: one pass of a model over some images, kept for the answers that need more than logits."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cached_property
from typing import NamedTuple, TypeVar, cast

import torch
from torch import Tensor

from spit.backbone import Heads, Recorder, Spans, attention_maps
from spit.backbone.linear import frozen_weights
from spit.interruption import may_stop
from spit.kernels.concurrency import torch_threads
from spit.model import SpitModel
from spit.partition import Partition
from spit.tokens import Tokens

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Outputs = tuple[Tensor, Tensor, Tokens]  # logits, class token and the other tokens


class Trace(NamedTuple):
    """What each layer computed."""

    logits: Tensor  # with gradients, they lead back to each layer's attention
    heads: list[Heads]  # queries, keys, values and answer of each layer; none if the backbone does not report them
    features: Mapping[int, Tokens]  # the tokens that leave each layer, before the final norm, the class token first
    spans: Spans  # which rows belong to which image

    def layers(self, score: Callable[[Tensor], Tensor]) -> Iterator[tuple[Heads, Tensor, tuple[Tensor, ...]]]:
        """Of a trace with gradients: each layer, the gradient of a score of the logits by its answer, and its maps.

        Attention maps are computed as they are asked for, so those of one layer exist at a time.
        """
        with torch.inference_mode(False), torch.enable_grad():
            gradients = torch.autograd.grad(score(self.logits), [heads.answer for heads in self.heads],
                                            retain_graph=True)
        for heads, gradient in zip(self.heads, gradients, strict=True):
            yield heads, gradient, attention_maps(heads.query, heads.key, self.spans)


class ForwardPass:
    """One pass of a model over some images. τ and φ ran before; γ, f and h run at the first question.

    Questions for logits and class tokens run what ``model(images)`` runs. The first question for anything else runs a
    pass that records each layer, and has the same logits to the last bit. Under autocast the passes have the precision
    that was set when this object was made.

    Args:
        model: in evaluation mode; it must not change between questions.
        images: as the model sees them, on its device.
        partition: of the images.
        features: of the partition's regions.
        keep: whether to keep what each layer computed. If not, :meth:`trace` computes it each time it is called.

    Attributes:
        features: of the regions, what γ takes, ``(ΣN, ·)``.
    """

    def __init__(self, model: SpitModel, images: Sequence[Tensor], partition: Partition, features: Tokens,
                 keep: bool = True) -> None:
        self.model = model
        self.images = tuple(images)
        self.partition = partition
        self.features = features
        self._keep = keep
        self._traces: dict[bool, Trace | None] = {}  # by whether it has gradients
        self._outputs: Outputs | None = None
        self._device = features.values.device.type
        self._half = torch.is_autocast_enabled(self._device), torch.get_autocast_dtype(self._device)

    def with_model(self, model: SpitModel) -> "ForwardPass":
        """A pass of another model with the same τ and φ, in this one's precision."""
        other = ForwardPass(model, self.images, self.partition, self.features, self._keep)
        other._half = self._half
        return other

    @property
    def logits(self) -> Tensor:
        """The output of h, ``(B, num_classes)``."""
        return self._answer[0] if self._outputs is None else self._outputs[0]

    @property
    def class_token(self) -> Tensor:
        """The class tokens after the final norm, ``(B, D)``."""
        return self._answer[1] if self._outputs is None else self._outputs[1]

    @property
    def tokens(self) -> Tokens:
        """The other tokens after the final norm, ``(ΣN, D)``; row v belongs to region v of the partition."""
        if self._outputs is None:
            if self._keep and not self.model.compiled:
                self._trace()
            else:
                with self._setting(gradients=False):
                    self._outputs = self.model.run(self.features)
        return cast(Outputs, self._outputs)[2]

    @cached_property
    def _answer(self) -> tuple[Tensor, Tensor]:
        """Logits and class tokens of a pass that records nothing."""
        with self._setting(gradients=False):
            class_token = self.model.summary(self.model.encode(self.features, first=True))
            return self.model.head(class_token), class_token

    @contextmanager
    def _setting(self, gradients: bool) -> Iterator[None]:
        half, dtype = self._half
        with (torch.inference_mode(False), torch.set_grad_enabled(gradients),
              torch.autocast(self._device, dtype, half)):
            yield

    def trace(self, gradients: bool = False) -> Trace:
        """What each layer computed; runs γ, f and h again if it was not kept.

        Args:
            gradients: return logits with their graph, from one more pass.
        """
        trace = self._trace(gradients)
        if trace is None or not trace.heads:
            raise ValueError(f"backbone {self.model.config.backbone!r} does not report its attention to the recorder; "
                             "explain by a method that does not need it, such as lime, and segment "
                             "by the final tokens")
        return trace

    def layer_features(self, layers: Iterable[int]) -> list[Tokens]:
        """The tokens that leave some layers, before the final norm, the class token first."""
        trace = self._trace()
        if trace is None or not trace.features.keys() >= set(layers):
            raise ValueError(f"backbone {self.model.config.backbone!r} does not report the features of its layers to "
                             "the recorder; cut the final tokens, without a head")
        return [trace.features[layer] for layer in layers]

    def _trace(self, gradients: bool = False) -> Trace | None:
        if gradients in self._traces:
            return self._traces[gradients]
        model = self.model.view() if self.model.compiled else self.model  # compiled code reports nothing
        with self._setting(gradients):
            values = self.features.values
            outputs, trace = traced(model, self.features.replace(values.clone() if values.is_inference() else values))
        if self._keep:
            self._traces[gradients] = trace
            if not gradients and model is self.model:
                self._outputs = outputs
        return trace

    def forget_gradients(self) -> None:
        """Drop the graph that :meth:`trace` keeps, several times the rest; it is computed again when needed."""
        self._traces.pop(True, None)

    @property
    def nbytes(self) -> int:
        """Bytes of features, answers and traces that are kept; what a graph holds beside them is not counted."""
        kept = [self.features.values]
        if self._outputs is not None:
            kept += [*self._outputs[:2], self._outputs[2].values]
        for trace in filter(None, list(self._traces.values())):
            kept += [tensor for heads in trace.heads for tensor in heads]
            kept += [tokens.values for tokens in trace.features.values()]
        storages = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in kept}
        return sum(storages.values())

    @torch.no_grad()
    def layer_tokens(self, layer: int) -> Tokens:
        """The tokens that leave a layer, through the final norm, without the class token."""
        if layer == self.model.config.depth - 1:
            return self.tokens
        [rows] = self.layer_features([layer])
        return self.model.tokens_of(rows.replace(self.model.backbone.norm(rows.values)))

    def layer_keys(self, layer: int) -> Tokens:
        """The keys of a layer's attention, all heads side by side, without the class token's."""
        trace = self.trace()
        return self.model.tokens_of(Tokens(trace.heads[layer].key.flatten(1), trace.spans.offsets.long()))

    def paint(self, values: Tensor) -> list[Tensor]:
        """One ``(h, w, …)`` map an image, from a value for each token."""
        return list(self.partition.paint(values))

    def read_rows(self, trace: Trace) -> Tensor:
        """What h reads of each image's rows, ``(B, L)``: 1 at the class token, or equal shares of the tokens."""
        offsets = trace.spans.offsets
        places = torch.arange(trace.spans.longest, device=offsets.device)
        if self.model.reads_class:
            return (places == 0).expand(len(trace.spans), -1).float()
        own = (places >= self.model.prefix) & (places < offsets.diff()[:, None])
        return own / own.sum(1, keepdim=True)

    def paint_rows(self, rows: Tensor) -> list[Tensor]:
        """Maps from ``(B, L)`` rows that start with the prefix's values and are padded to the longest image."""
        maps: list[Tensor] = []
        for block in self.partition.blocks:  # not packed first: a GPU would wait for the counts
            own = rows[len(maps) : len(maps) + len(block), self.model.prefix :]
            maps += own.gather(1, block.flatten(1).long()).view(block.shape)
        return maps


def traced(model: SpitModel, features: Tokens) -> tuple[Outputs, Trace | None]:
    """Run γ, f and h, and record each layer; the trace is None if the backbone reports nothing."""
    heads: list[Heads] = []
    spans: list[Spans] = []

    def observe(layer: int, own: Spans, found: Heads) -> None:
        if torch.is_grad_enabled() and not found.answer.requires_grad:  # with frozen parameters the graph starts here
            found.answer.requires_grad_()
        heads.append(found)
        spans.append(own)

    recorder = Recorder({"features": range(model.config.depth)}, observe=observe)
    with frozen_weights():
        outputs = model.run(features, recorder)
    spans += [Spans.of(tokens) for tokens in recorder.features.values() if not spans][:1]
    return outputs, Trace(outputs[0], heads, recorder.features, spans[0]) if spans else None


def each_alone(work: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
    """Work on each item alone, as many at a time as torch has threads, each on one thread.

    Faster than one after another on all threads, since small operations do not fill them. The answers are the same.
    """
    count = min(len(items), torch.get_num_threads())

    def alone(item: Item) -> Answer:
        may_stop()
        return work(item)

    if count < 2:
        return [alone(item) for item in items]
    inference, gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    half, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

    def run(item: Item) -> Answer:  # other threads do not see these
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients), torch.autocast("cpu", dtype, half):
            return alone(item)

    contexts = [copy_context() for _ in items]
    with torch_threads(1), ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda context, item: context.run(run, item), contexts, items))
