"""SpitModel: the five arrows put together (§2.1, Eq. 1)."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import Tensor, nn

from spit.backbone import Record, Recorder, Transformer
from spit.config import ModelConfig
from spit.embedder import Embedder, take_class_token
from spit.features import FeatureExtractor
from spit.heads import ClassHead
from spit.images import ImageBlocks, Images, image_blocks
from spit.partition import Partition
from spit.tokenizers import Tokenizer, create_tokenizer
from spit.tokens import Tokens

__all__ = ["ModelConfig", "Output", "SpitModel", "choose_tokens"]


@dataclass(frozen=True)
class Output:
    """What a model says of a batch when ``record`` is given.

    Attributes:
        logits: h's answer.
        class_token: the class token as it leaves f, after the final norm.
        tokens: the other tokens as they leave f; row v belongs to region v, so that
            ``partition.paint(tokens.values)`` is a dense feature map.
        partition: τ's answer.
        kept: in training, the regions that the token budget kept, which ``tokens`` then are; None
            where nothing was dropped by rule (always in evaluation).
        attention: layer to one map an image, the class token in row and column 0.
        features: layer to its tokens, the class token first in every image, before the final norm.

    Shape:
        logits ``(B, num_classes)``, class_token ``(B, D)``, tokens ``(ΣN, D)``, kept ``(ΣN,)`` bool,
        attention[l][b] ``(heads, N + 1, N + 1)``, features[l] ``(Σ(N + 1), D)``.
    """

    logits: Tensor
    class_token: Tensor
    tokens: Tokens
    partition: Partition
    kept: Tensor | None
    attention: Mapping[int, tuple[Tensor, ...]]
    features: Mapping[int, Tokens]

    def __repr__(self) -> str:
        kept = "all" if self.kept is None else f"{len(self.tokens.values)} of {len(self.kept)}"
        return (f"Output(logits {tuple(self.logits.shape)}, class_token {tuple(self.class_token.shape)}, "
                f"tokens {tuple(self.tokens.values.shape)}, kept {kept}, attention of layers {list(self.attention)}, "
                f"features of layers {list(self.features)}, {self.partition!r})")


class SpitModel(nn.Module):
    """``Φ = h ∘ f ∘ γ ∘ φ ∘ τ``, with τ to choose.

    Args:
        config: what to build.

    Shape:
        images ``(B, C, H, W)``, or a list of ``(C, H, W)`` of different sizes, uint8 or floats in
        [0, 1]; logits ``(B, num_classes)``.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.tokenizer: Callable[[Images], Partition] = create_tokenizer(config.tokenizer, **config.tokenizer_options)
        self.extractor = FeatureExtractor(
            channels=config.channels,
            resolution=config.resolution,
            position_bins=config.position_bins,
            position_sigma=config.position_sigma,
            gradients=config.gradients,
            gradient_bins=config.gradient_bins,
            gradient_sigma=config.gradient_sigma,
            normalization=config.normalization,
            fill=config.fill,
        )
        self.embedder = Embedder(self.extractor.width, config.width)
        self.backbone = Transformer(config.width, config.depth, config.heads, config.mlp_ratio, config.qkv_bias,
                                    config.layer_scale, config.drop_path)
        self.head = ClassHead(config.width, config.num_classes)

    @overload
    def forward(self, images: Images, record: None = None) -> Tensor: ...

    @overload
    def forward(self, images: Images, record: Record) -> Output: ...

    def forward(self, images: Images, record: Record | None = None) -> Tensor | Output:
        """Classify images.

        Args:
            images: never modified.
            record: names among "attention" and "features" to keep of every layer, or a mapping from
                names to layers, ``{"attention": (-1,)}``; the answer is then an :class:`Output`. The
                logits are the same to the last bit. What is not asked for is not computed.

        Raises:
            TypeError, ValueError: images of a wrong type, shape, range, channel count or device, or a
                record of names or layers that are not there.
        """
        recorder = None if record is None else Recorder.of(record, self.config.depth)
        blocks = self._check(images)
        # τ and φ take blocks that are checked already; a callable of the user's gets what the user gave.
        partition = self.tokenizer(blocks if isinstance(self.tokenizer, Tokenizer) else images)
        features = self.extractor(blocks, partition)
        kept = self._choose(features)
        tokens = self.backbone(self.embedder(features if kept is None else features.select(kept)), recorder)
        class_token, tokens = take_class_token(tokens)
        logits: Tensor = self.head(class_token)
        if recorder is None:
            return logits
        return Output(logits, class_token, tokens, partition, kept, recorder.attention, recorder.features)

    def embed(self, images: Images) -> Tensor:
        """The class token of each image after the final norm, ``(B, D)``."""
        return self.forward(images, record=()).class_token

    def compile(self, **options: Any) -> None:
        """Compile the network in place.

        What is compiled is f, where the time goes: τ and φ are kernels already, and γ and h are one matrix
        product each, with nothing to fuse.

        The ragged number of tokens is dynamic, so that batches do not compile again. Recording still
        leaves the logits as they are; what is recorded comes from a second, plain pass. A copy of the model
        is not compiled.

        Args:
            options: of :func:`torch.compile`.
        """
        self.backbone.compiled = torch.compile(self.backbone.run_blocks, **options)

    def with_tokenizer(self, tokenizer: str | Callable[[Images], Partition], **options: Any) -> "SpitModel":
        """The same model with another τ.

        The new model has the very same parameters, not copies: training one trains both. Modes
        (train, eval) and hooks are its own, it is not compiled, and this model stays as it is.

        Args:
            tokenizer: "patch", "voronoi" or "superpixel", made with their defaults (with the present
                options where τ already is of that name), or any callable from images to a Partition.
            options: of the tokenizer of that name, as in ``with_tokenizer("voronoi", cells=64)``.

        Raises:
            TypeError: no name and no callable, or options beside a callable.
            ValueError: an unknown name or option; the nearest known ones are named.
        """
        if isinstance(tokenizer, str):
            present = self.config.tokenizer_options if tokenizer == self.config.tokenizer else {}
            tokenizer = create_tokenizer(tokenizer, **{**present, **options})
        elif not callable(tokenizer):
            raise TypeError(f"expected the name of a tokenizer or a callable from images to a Partition, "
                            f"got {tokenizer!r}")
        elif options:
            raise TypeError(f"options go with the name of a tokenizer, got {', '.join(options)} beside {tokenizer!r}; "
                            "make that one with its options")
        shared = {id(tensor): tensor for tensors in (self.parameters(), self.buffers()) for tensor in tensors}
        model = copy.deepcopy(self, dict(shared))
        model.tokenizer = tokenizer
        if isinstance(tokenizer, Tokenizer):
            name, options = tokenizer.name, tokenizer.config()
        else:
            name, options = type(tokenizer).__name__, {}
        model.config = self.config.replace(tokenizer=name, tokenizer_options=options)
        return model

    def _choose(self, features: Tokens) -> Tensor | None:
        if not self.training or self.config.token_budget is None:
            return None
        return choose_tokens(features, self.config.token_budget)

    def _check(self, images: Images) -> ImageBlocks:
        device = self.embedder.class_token.device
        blocks = image_blocks(images)
        for block in blocks:
            if block.shape[1] != self.config.channels:
                convert = "convert them"
                if block.shape[1] == 1:
                    count = self.config.channels
                    batch = isinstance(images, Tensor) and images.ndim == 4
                    convert = (f"repeat the grey with images.expand(-1, {count}, -1, -1)" if batch else
                               f"repeat the grey with image.expand({count}, -1, -1)")
                raise ValueError(
                    f"expected images of {self.config.channels} channels, got shape {tuple(block.shape)}; "
                    f"{convert}, or make a model with channels={block.shape[1]}")
            if block.device != device:
                raise ValueError(f"expected images on {device}, where the model is, got {block.device}; "
                                 "move one of them with .to()")
        return blocks


def choose_tokens(tokens: Tokens, budget: int) -> Tensor:
    """Token dropout to a budget (App. C): which tokens to keep.

    An image with more than ``budget`` tokens keeps a uniformly random subset of exactly that many;
    the others keep all. Random numbers come from torch's generator of the tokens' device; the host
    waits for nothing.

    Shape:
        tokens ``(ΣN, D)`` to ``(ΣN,)`` bool.
    """
    image_of = tokens.image_of
    order = torch.randperm(len(image_of), device=image_of.device)
    order = order[image_of[order].argsort(stable=True)]  # images in order, each image's tokens shuffled
    rank = torch.arange(len(image_of), device=image_of.device) - tokens.offsets[image_of]
    return torch.empty_like(image_of, dtype=torch.bool).index_copy(0, order, rank < budget)
