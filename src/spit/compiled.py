"""Inference of a compiled model on a GPU: φ, γ, f and h of a batch as one launch."""

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.backbone import Spans, Transformer
from spit.backbone.block import product_dtype
from spit.backbone.spans import STEP, round_up, step_of
from spit.embedder import put_class_token
from spit.features import FeatureExtractor
from spit.images import ImageBlocks
from spit.partition import Partition
from spit.replay import Recordings
from spit.tokens import Tokens

if TYPE_CHECKING:
    from spit.model import SpitModel


class ReplayedInference:
    """Logits from a recording of everything after the tokenizer.

    The number of tokens differs from batch to batch. It is rounded up, so that a few recordings serve all batches; the
    rows in excess belong to no image, and nothing reads them. Weights may change in place. If they move, call
    :meth:`clear`.

    Args:
        model: with a compiled :class:`~spit.backbone.Transformer`.
    """

    def __init__(self, model: "SpitModel") -> None:
        self.model = model
        self._recordings = Recordings()

    def serves(self, blocks: ImageBlocks, partition: Partition) -> bool:
        """Whether these images can be answered so: in inference on a GPU, all of one size."""
        model = self.model
        extractor = model.extractor
        return (blocks[0].is_cuda and len(blocks) == len(partition.blocks) == 1 and partition.frames is None
                and not model.training and not torch.is_grad_enabled()
                and isinstance(extractor, FeatureExtractor) and extractor.preset == "spit"
                and isinstance(model.backbone, Transformer))

    def __call__(self, block: Tensor, partition: Partition) -> Tensor:
        """The logits of a block, ``(B, num_classes)``. The only wait for the device is for the numbers of tokens."""
        offsets = partition.offsets
        total, longest = torch.stack([offsets[-1], offsets.diff().max()]).tolist()
        dtype = product_dtype(self.model.embedder.projection.weight)
        options = (round_up(total, step_of(total)), round_up(longest + 1, STEP), dtype)
        logits, = self._recordings(self._answer, (block, partition.blocks[0], offsets), options)
        return logits

    def clear(self) -> None:
        """Forget all recordings."""
        self._recordings.clear()

    def _answer(self, tensors: tuple[Tensor, ...], options: Any) -> tuple[Tensor, ...]:
        """Nothing here waits for the device, nor casts weights by autocast, whose copies would outlive a recording."""
        (block, labels, offsets), (rows, longest, dtype) = tensors, options
        model = self.model
        with torch.autocast(block.device.type, enabled=False):
            features = cast(FeatureExtractor, model.extractor).padded(block, labels, offsets, rows)
            values = _linear(features, model.embedder.projection, dtype).to(model.embedder.class_token.dtype)
            padded = torch.cat([offsets[:-1], offsets.new_full((1,), rows)])  # the last image has the rows in excess
            embedded = put_class_token(Tokens(values, padded), model.embedder.class_token)
        firsts = offsets + torch.arange(len(offsets), device=offsets.device)
        spans = Spans(firsts.int(), embedded.image_of, (), longest, False)
        values = model.backbone.run(embedded.values, spans)
        with torch.autocast(block.device.type, enabled=False):
            class_token = values[firsts[:-1]]
            return (class_token if model.head.linear is None else _linear(class_token, model.head.linear, dtype),)


def _linear(values: Tensor, layer: torch.nn.Linear, dtype: torch.dtype) -> Tensor:
    """A linear layer as autocast to this dtype would compute it."""
    return F.linear(values.to(dtype), layer.weight.to(dtype), None if layer.bias is None else layer.bias.to(dtype))
