"""A compiled model: ``forward`` of a model and of its backbone as compiled code, on a GPU as CUDA graphs.

:class:`CompiledModel` and :class:`CompiledBackbone` take the place of ``forward`` on the model that
:meth:`spit.SpitModel.compile` is called on. The model, φ and the blocks know nothing of them.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit import kernels
from spit.backbone import Record, Recorder, Spans, Transformer
from spit.backbone.linear import product_dtype
from spit.features import FeatureExtractor
from spit.images import ImageBlocks, Images
from spit.kernels.recording import STEP, Recordings, round_up, step_of
from spit.partition import Partition
from spit.thinning import choose_rows
from spit.tokens import Tokens, offsets_of

if TYPE_CHECKING:
    from spit.model import Output, SpitModel

LONGEST = 512  # a bound on the tokens of an image is a power of two, at least this: another compiles the network again
WITHOUT_GRAPHS: dict[str | None, str | None] = {
    "reduce-overhead": None, "max-autotune": "max-autotune-no-cudagraphs"}  # modes of torch.compile


class CompiledModel:
    """``forward`` of a compiled model.

    Inference on a GPU is one launch after the tokenizer, and training with CUDA graphs two. Elsewhere f is compiled,
    and everything else runs as in :meth:`spit.SpitModel.forward`.

    Args:
        model: its backbone is compiled in place.
        options: of :func:`torch.compile`.
    """

    def __init__(self, model: "SpitModel", **options: Any) -> None:
        self._model = model
        self.inference = ReplayedInference(model, **options)
        self.training = CompiledSteps(model, **options) if options.get("mode") in WITHOUT_GRAPHS else None
        if isinstance(model.backbone, Transformer):
            model.backbone.forward = CompiledBackbone(model.backbone, **options)  # type: ignore[method-assign]
        else:
            model.backbone.compile(**options)

    def __call__(self, images: Images, record: Record | None = None) -> "Tensor | Output":
        model = self._model
        if record is not None:
            return self._recorded(images, Recorder.of(record, model.config.depth))
        blocks = model.check(images)
        partition = model.partition(images, blocks)
        if self.inference.serves(blocks, partition):
            return self.inference(blocks[0], partition)
        if self.training is not None and self.training.serves_images(blocks, partition):
            class_token = self.training.of_images(blocks[0], partition)
        else:
            features, _ = model.drop_tokens(partition, model.extract(blocks, partition, half=True))
            if self.training is not None and self.training.serves(features.values.device):
                class_token = self.training(features)
            else:
                class_token = model.summary(model.encode(features, first=True))
        logits: Tensor = model.head(class_token)
        return logits

    def _recorded(self, images: Images, recorder: Recorder) -> "Output":
        """A plain pass that records, with the logits of a pass that records nothing."""
        output = type(self._model).forward(self._model, images, recorder)
        blocks = self._model.check(images)
        if not recorder.fused and self.inference.serves(blocks, output.partition):
            output = replace(output, logits=self.inference(blocks[0], output.partition))
        return output

    def clear(self) -> None:
        """Forget what was recorded, since the weights have moved or were replaced."""
        self.inference.clear()


class CompiledBackbone:
    """``forward`` of a compiled :class:`~spit.backbone.Transformer`, without CUDA graphs.

    Another number of rows does not compile it again.

    Args:
        backbone: the module.
        options: of :func:`torch.compile`.
    """

    def __init__(self, backbone: Transformer, **options: Any) -> None:
        self._backbone = backbone
        self._run = torch.compile(backbone.run_blocks, **without_graphs(options))

    def __call__(self, tokens: Tokens, recorder: Recorder | None = None, first: bool = False) -> Tokens:
        spans = Spans.of(tokens)
        if recorder and not recorder.fused:
            # A second, plain pass: the compiled one stays the same to the last bit.
            devices = [tokens.values.device] if tokens.values.is_cuda else []
            with torch.random.fork_rng(devices):
                self._backbone.run_blocks(tokens.values, spans, recorder)
            recorder = None
        for rows in (tokens.values, spans.image_of):
            torch._dynamo.maybe_mark_dynamic(rows, 0)
        answer = tokens.replace(self._run(tokens.values, spans, recorder or None))
        return Tokens.one_each(answer.first) if first else answer


def without_graphs(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of :func:`torch.compile` with a mode that uses no CUDA graphs."""
    mode = options.get("mode")
    return {**options, "mode": WITHOUT_GRAPHS.get(mode, mode)}


class ReplayedInference:
    """Logits from a recording of everything after the tokenizer.

    The number of tokens differs from batch to batch. It is rounded up, so that a few recordings serve all batches; the
    rows in excess belong to no image, and nothing reads them. The last block computes the class tokens alone, which are
    all that h reads. In half precision the matrices are copies, made again when the weights have changed in place. If
    the weights move, call :meth:`clear`.

    Args:
        model: with a :class:`~spit.backbone.Transformer`.
        options: of :func:`torch.compile`.
    """

    def __init__(self, model: "SpitModel", **options: Any) -> None:
        self.model = model
        self._options = without_graphs(options)
        self._recordings = Recordings()
        self._networks: dict[torch.dtype, _Network] = {}

    def serves(self, blocks: ImageBlocks, partition: Partition) -> bool:
        """Whether these images can be answered so: in inference on a GPU, all of one size."""
        model = self.model
        return (not model.training and not torch.is_grad_enabled() and isinstance(model.backbone, Transformer)
                and _records_features(model, blocks, partition))

    def __call__(self, block: Tensor, partition: Partition) -> Tensor:
        """The logits of a block, ``(B, num_classes)``. The only wait for the device is for the numbers of tokens."""
        dtype = product_dtype(self.model.embedder.projection.weight)
        if dtype not in self._networks:
            self._networks[dtype] = _Network(self.model, dtype, self._options)
        offsets = partition.offsets
        tensors, extent = (block, partition.blocks[0], offsets), torch.stack([offsets[-1], offsets.diff().max()])

        def options() -> tuple[int, int, torch.dtype]:
            total, longest = extent.tolist()
            return round_up(total, step_of(total)), max(LONGEST, 1 << longest.bit_length()), dtype

        logits, = self._recordings(self._answer, tensors, options)
        if self._networks[dtype].refresh():  # asked while the device is busy
            logits, = self._recordings(self._answer, tensors, options)
        return logits

    def clear(self) -> None:
        """Forget all recordings and copies of weights."""
        self._recordings.clear()
        self._networks.clear()

    def _answer(self, tensors: tuple[Tensor, ...], options: Any) -> tuple[Tensor, ...]:
        """Nothing here waits for the device."""
        (block, labels, offsets), (rows, longest, dtype) = tensors, options
        features = cast(FeatureExtractor, self.model.extractor).describe(block, labels, offsets, rows, dtype=dtype)
        return (self._networks[dtype](features, offsets, longest),)


class _Network:
    """γ, f and h of a model, with matrices in the precision of the products, for features with rows in excess."""

    def __init__(self, model: "SpitModel", dtype: torch.dtype, options: Mapping[str, Any]) -> None:
        parts = (model.embedder, cast(Transformer, model.backbone), model.head)
        with torch.inference_mode(False):  # inference tensors cannot be written to outside inference mode
            self._copies = copy.deepcopy(parts)
            for module in chain(*(part.modules() for part in self._copies)):
                if isinstance(module, nn.Linear):
                    module.to(dtype)
        self._weights, self._copied = (tuple(chain(*(part.parameters() for part in some)))
                                       for some in (parts, self._copies))
        self._counted = [weight for weight in self._weights if not weight.is_inference()]  # they know their version
        self._version = self._present_version()
        self._run = torch.compile(self._forward, **options)

    def refresh(self) -> bool:
        """Copy the weights again if they have changed in place, and say so."""
        version = self._present_version()
        if version == self._version:
            return False
        self._version = version
        with torch.no_grad():
            torch._foreach_copy_(self._copied, self._weights)
        return True

    def _present_version(self) -> int:
        return sum(weight._version for weight in self._counted)

    def __call__(self, features: Tensor, offsets: Tensor, longest: int) -> Tensor:
        """Logits of padded features; ``longest`` bounds the rows of an image, its class token included."""
        images, total = len(offsets) - 1, len(features) + len(offsets) - 1
        firsts = offsets + torch.arange(images + 1, device=offsets.device)
        ends = torch.cat([firsts[:-1], firsts.new_full((1,), total)])  # the last image has the rows in excess
        image_of = Tokens(features.new_empty(total, 0), ends).image_of
        spans = Spans(firsts.int(), image_of, (), longest, False)
        for dynamic in (features, image_of, spans.offsets):
            torch._dynamo.maybe_mark_dynamic(dynamic, 0)
        logits: Tensor = self._run(features, spans)
        return logits

    def _forward(self, features: Tensor, spans: Spans) -> Tensor:
        embedder, backbone, head = self._copies
        projected = embedder.projection(features).to(embedder.class_token.dtype)
        row = torch.arange(len(spans.image_of), device=features.device)
        first = row == spans.offsets[spans.image_of]
        values = torch.where(first[:, None], embedder.class_token, projected[(row - spans.image_of - 1).clamp(min=0)])
        logits: Tensor = head(backbone.run_first(values, spans))
        return logits


class CompiledSteps:
    """The class tokens of a batch in training, from torch's own CUDA graphs of f.

    Numbers of rows are rounded up with images in excess, whose gradients are zero, so that a few graphs serve all
    batches. The last block computes the class tokens alone, which are all that h reads.

    Args:
        model: with a :class:`~spit.backbone.Transformer`.
        options: of :func:`torch.compile`.
    """

    def __init__(self, model: "SpitModel", **options: Any) -> None:
        self.model = model
        self._run = torch.compile(self._forward, **options)

    def serves(self, device: torch.device) -> bool:
        """Whether this is a training step on a GPU that keeps its activations."""
        return (device.type == "cuda" and self.model.training and torch.is_grad_enabled()
                and isinstance(self.model.backbone, Transformer) and not self.model.backbone.checkpointing)

    def serves_images(self, blocks: ImageBlocks, partition: Partition) -> bool:
        """Whether :meth:`of_images` can take these: such a step, of images of one size with one token budget."""
        return (self.serves(blocks[0].device) and self.model.budgets is None and not blocks[0].requires_grad
                and _records_features(self.model, blocks, partition))

    def __call__(self, features: Tokens) -> Tensor:
        """The class tokens after the final norm, ``(B, D)``."""
        counts = features.host_counts
        rows, images = rounded_rows(sum(counts) + len(counts))
        projected = self.model.embedder.project(features.values)
        projected = F.pad(projected, (0, 0, 0, rows - images - len(counts) - len(projected)))
        return self._class_tokens(projected, lay_out(features.offsets, rows, images), counts)

    def of_images(self, block: Tensor, partition: Partition) -> Tensor:
        """φ, the token budget and :meth:`__call__`; all before γ is one launch.

        So the GPU does not wait for Python between the tokenizer, after which the host learns the number of tokens, and
        the network.
        """
        block = block if block.dtype == torch.uint8 else block.float()
        budget, dtype = self.model.config.token_budget, product_dtype(self.model.embedder.projection.weight)
        counts: list[int] = []

        def options() -> tuple[Any, ...]:
            counts[:] = [count if budget is None else min(count, budget) for count in partition.host_counts]
            total = sum(partition.host_counts)
            return (self.model.extractor, dtype, budget, round_up(total, step_of(total)),
                    *rounded_rows(sum(counts) + len(counts)))

        features, *layout = kernels.recorded(_prepare, (block, partition.blocks[0], partition.offsets), options)
        return self._class_tokens(self.model.embedder.project(features), layout, counts)

    def _class_tokens(self, projected: Tensor, layout: Sequence[Tensor], counts: Sequence[int]) -> Tensor:
        offsets, image_of, places = layout
        longest = round_up(max(counts) + 1, STEP)  # so that few values compile f again
        for dynamic in (projected, places, image_of):
            torch._dynamo.maybe_mark_dynamic(dynamic, 0)
        answer: Tensor = self._run(projected, places, Spans(offsets, image_of, (), longest, False))[: len(counts)]
        return answer

    def _forward(self, projected: Tensor, places: Tensor, spans: Spans) -> Tensor:
        """What is compiled: projected rows at their places, class tokens at the others, and f."""
        class_token = self.model.embedder.class_token
        values = class_token.expand(len(spans.image_of), -1).index_copy(0, places, projected.to(class_token.dtype))
        return cast(Transformer, self.model.backbone).run_first(values, spans)


def rounded_rows(total: int) -> tuple[int, int]:
    """A number of packed rows rounded up, and the images in excess that have the rows added, from 1 to STEP each.

    CUDA graphs are recorded for a number of rows and of images. Rows of such images are computed like others, so they
    must be finite; in training, unlike rows of no image, they add nothing to any gradient.
    """
    images = step_of(total) // STEP + 1
    return round_up(total + images, step_of(total)), images


def lay_out(offsets: Tensor, rows: int, images: int) -> tuple[Tensor, Tensor, Tensor]:
    """Where tokens lie in a packed batch with class tokens and images in excess. Nothing waits for the device.

    Args:
        offsets: of the tokens, ``(B + 1,)``.
        rows, images: see :func:`rounded_rows`; ΣN + B rows are those of the tokens and their class tokens.

    Returns:
        Offsets of all images, ``(B + images + 1,)`` int32; the image of each row, ``(rows,)``; and the row of each
        token, those of images in excess included, ``(rows - B - images,)``.
    """
    device = offsets.device
    with_class = offsets + torch.arange(len(offsets), device=device)
    total = with_class[-1]
    ends = torch.arange(1, images + 1, device=device) * (rows - total) // images + total
    starts = torch.cat([with_class, ends]).int()
    every, row = (torch.arange(count, device=device, dtype=torch.int32) for count in (len(starts) - 1, rows))
    token = row[: rows - len(every)]
    places = token + torch.bucketize(token, (starts[:-1] - every)[1:], right=True) + 1
    return starts, torch.bucketize(row, starts[1:-1], right=True), places


def _prepare(tensors: tuple[Tensor, ...], options: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Features of the tokens that the budget keeps, and their layout, to be recorded.

    Rows of images in excess hold the first token of the batch: any finite values will do.
    """
    (block, labels, offsets), (extractor, dtype, budget, regions, rows, images) = tensors, options
    features = extractor.describe(block, labels, offsets, regions, dtype=dtype)
    most = offsets.diff() if budget is None else offsets.diff().clamp(max=budget)
    kept = choose_rows(offsets, regions, most)
    tokens = rows - images - len(most)
    taken = offsets.new_zeros(tokens + 1)  # the last for those that are not kept
    taken[torch.where(kept, kept.cumsum(0) - 1, tokens)] = torch.arange(regions, device=offsets.device)
    return features[taken[:tokens]], *lay_out(offsets_of(most), rows, images)


def _records_features(model: "SpitModel", blocks: ImageBlocks, partition: Partition) -> bool:
    """Whether φ can be part of a recording: on a GPU, for images of one size."""
    extractor = model.extractor
    return (blocks[0].is_cuda and len(blocks) == len(partition.blocks) == 1 and partition.frames is None
            and isinstance(extractor, FeatureExtractor) and extractor.fill != "crop")
