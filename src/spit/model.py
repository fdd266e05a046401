"""SpitModel: the five arrows put together (§2.1, Eq. 1)."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast, overload

import torch
from torch import Tensor, nn

from spit import timm_methods
from spit.backbone import Record, Recorder, Transformer
from spit.backbone.linear import product_dtype
from spit.compiled import CompiledModel
from spit.config import ModelConfig
from spit.embedder import Embedder, drop_class_token
from spit.features import FeatureExtractor
from spit.heads import ClassHead
from spit.images import ImageBlocks, Images, image_blocks
from spit.partition import Partition
from spit.parts import BACKBONES, TOKENIZERS, check_partition, check_tokens
from spit.thinning import Budget, draw_tokens
from spit.tokenizers import Tokenizer, create_tokenizer
from spit.tokens import Tokens


@dataclass(frozen=True)
class Output:
    """What a forward pass computed; a model returns it when ``record`` is given.

    Attributes:
        logits: the output of h.
        class_token: the class token as it leaves f, after the final norm.
        tokens: the other tokens as they leave f. Row v belongs to region v: ``partition.paint(tokens.values)`` is a
            dense feature map.
        partition: the output of τ.
        kept: in training, the regions that the token budget kept, which are those of ``tokens``; else None.
        attention: the maps of each recorded layer, one an image, the class token in row and column 0, and registers of
            a wrapped backbone behind it.
        features: the tokens that leave each recorded layer, before the final norm, with the same tokens first.

    Shape:
        logits ``(B, num_classes)``, class_token ``(B, D)``, tokens ``(ΣN, D)``, kept ``(ΣN,)`` bool,
        ``attention[l][b]`` ``(heads, N + 1, N + 1)``, ``features[l]`` ``(Σ(N + 1), D)``.

    Example:
        >>> import spit, torch
        >>> model = spit.create_model("vit_tiny_16", num_classes=10)
        >>> out = model(torch.rand(1, 3, 64, 64), record={"attention": (-1,)})
        >>> out.attention[11][0].shape
        torch.Size([3, 17, 17])
        >>> out.partition.paint(out.tokens.values).shape
        torch.Size([1, 64, 64, 192])
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
    """``Φ = h ∘ f ∘ γ ∘ φ ∘ τ``, with each part to choose, and the methods of timm's models (:mod:`spit.timm_methods`).

    Args:
        config: what to build.

    Shape:
        images ``(B, C, H, W)``, or a list of ``(C, H, W)`` of different sizes, uint8 or floats in [0, 1]; logits
        ``(B, num_classes)``.

    Example:
        >>> import spit, torch
        >>> model = spit.create_model("spit_tiny_16", num_classes=10)
        >>> model([torch.rand(3, 64, 64), torch.rand(3, 48, 80)]).shape
        torch.Size([2, 10])
    """

    prefix = 1  # rows in front of an image's tokens: the class token
    reads_class = True  # whether h reads the class token; else all tokens

    num_features = embed_dim = summary_width = property(timm_methods.num_features)
    num_classes = property(timm_methods.num_classes)
    pretrained_cfg = default_cfg = property(timm_methods.pretrained_cfg)
    feature_info = property(timm_methods.feature_info)
    forward_features = timm_methods.forward_features
    forward_head = timm_methods.forward_head
    get_classifier = timm_methods.get_classifier
    reset_classifier = timm_methods.reset_classifier
    no_weight_decay = timm_methods.no_weight_decay
    group_matcher = timm_methods.group_matcher
    set_grad_checkpointing = timm_methods.set_grad_checkpointing
    get_intermediate_layers = timm_methods.get_intermediate_layers
    from_pretrained = classmethod(timm_methods.from_pretrained)
    save_pretrained = timm_methods.save_pretrained
    push_to_hub = timm_methods.push_to_hub

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.tokenizer: Callable[[Images], Partition] = create_tokenizer(config.tokenizer, **config.tokenizer_options)
        self.extractor: Callable[[Images, Partition], Tokens] = config.create_extractor()
        features = getattr(self.extractor, "width", None)
        if not isinstance(features, int) or isinstance(features, bool) or features < 1:
            raise TypeError(f"expected features {config.extractor!r} to have a width, the number of features of a "
                            f"token, got {features!r}")
        self.embedder = Embedder(features, config.width)
        self.backbone = config.create_backbone()
        self.head = ClassHead(config.width, config.num_classes)
        self.budgets: Sequence[Budget] | None = None  # in training, of each image; None takes the config's

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles are not compiled."""
        return {name: value for name, value in super().__getstate__().items()  # type: ignore[no-untyped-call]
                if name != "forward"}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move or convert the parameters: recordings of the old ones are forgotten."""
        if self.compiled is not None:
            self.compiled.clear()
        return super()._apply(fn, recurse)  # type: ignore[no-any-return, no-untyped-call]

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.embedder.class_token.device

    @property
    def compiled(self) -> CompiledModel | None:
        """What runs in place of :meth:`forward` since :meth:`compile` was called; None before."""
        return vars(self).get("forward")

    @overload
    def forward(self, images: Images, record: None = None) -> Tensor: ...

    @overload
    def forward(self, images: Images, record: Record) -> Output: ...

    def forward(self, images: Images, record: Record | None = None) -> Tensor | Output:
        """Classify images.

        Args:
            images: not modified.
            record: names among "attention" and "features" to keep of every layer, or a mapping from names to layers,
                ``{"attention": (-1,)}``; the model then returns an :class:`Output`. The logits stay the same to the
                last bit.
        """
        recorder = None if record is None else Recorder.of(record, self.config.depth)
        blocks = self.check(images)
        partition = self.partition(images, blocks)  # τ
        features, kept = self.drop_tokens(partition, self.extract(blocks, partition, half=True))  # φ
        encoded = self.encode(features, recorder, first=recorder is None)  # γ and f
        class_token = self.summary(encoded)
        logits: Tensor = self.head(class_token)  # h
        if recorder is None:
            return logits
        return Output(logits, class_token, self.tokens_of(encoded), partition, kept, recorder.attention,
                      recorder.features)

    def tokenize(self, images: Images) -> tuple[Partition, Tokens]:
        """τ and φ: the partition of the images, and the features of its regions."""
        blocks = self.check(images)
        partition = self.partition(images, blocks)
        return partition, self.extract(blocks, partition)

    def partition(self, images: Images, blocks: ImageBlocks) -> Partition:
        """τ of checked images; a callable that is not a Tokenizer gets them as the user gave them."""
        partition = self.tokenizer(blocks if isinstance(self.tokenizer, Tokenizer) else images)
        if type(self.tokenizer).__call__ is not Tokenizer.__call__:  # which checks what it returns
            check_partition(partition, blocks, f"the tokenizer {_name(self.tokenizer)} returned it")
        return partition

    def extract(self, blocks: ImageBlocks, partition: Partition, half: bool = False) -> Tokens:
        """φ of checked images; ``half`` allows a GPU to write half precision if γ would round them to it."""
        if isinstance(self.extractor, FeatureExtractor):
            dtype = product_dtype(self.embedder.projection.weight)
            dtype = dtype if half and dtype.itemsize == 2 else torch.float32
            return self.extractor.of_checked(blocks, partition, dtype)
        features = self.extractor(blocks, partition)
        check_tokens(features, partition.offsets, self.embedder.projection.in_features,
                     f"the features {_name(self.extractor)} returned them")
        return features

    def encode(self, features: Tokens, recorder: Recorder | None = None, first: bool = False) -> Tokens:
        """γ and f: tokens after the final norm, the class token first in each image, ``(Σ(N + 1), D)``.

        Args:
            first: a :class:`~spit.backbone.Transformer` may leave out all but the class tokens.
        """
        embedded = self.embedder(features)
        if isinstance(self.backbone, Transformer):
            return cast(Tokens, self.backbone(embedded, recorder, first))
        tokens: Tokens = self.backbone(embedded, recorder)
        check_tokens(tokens, embedded.offsets, self.config.width, f"the backbone {_name(self.backbone)} returned them")
        return tokens

    def run(self, features: Tokens, recorder: Recorder | None = None) -> tuple[Tensor, Tensor, Tokens]:
        """γ, f and h: logits ``(B, num_classes)``, class token ``(B, D)`` and the other tokens ``(ΣN, D)``."""
        encoded = self.encode(features, recorder)
        class_token = self.summary(encoded)
        return self.head(class_token), class_token, self.tokens_of(encoded)

    def summary(self, encoded: Tokens) -> Tensor:
        """What h reads of the tokens that leave f: the class tokens, ``(B, D)``."""
        return encoded.first

    def tokens_of(self, rows: Tokens) -> Tokens:
        """The image's own tokens among rows of f, without the class token."""
        return drop_class_token(rows, self.prefix)

    def drop_tokens(self, partition: Partition, features: Tokens) -> tuple[Tokens, Tensor | None]:
        """In training, the tokens that the budget keeps and which these are; otherwise all of them and None."""
        budgets, budget = self.budgets, self.config.token_budget
        if budgets is None and budget is not None:
            budgets = [Budget(budget)] * len(features)
        if budgets is None or not self.training:
            return features, None
        kept = draw_tokens(partition, features, budgets)
        counts = [min(count, budget.tokens) for count, budget in zip(features.host_counts, budgets, strict=True)]
        return features.select(kept, counts), kept

    def check_saved(self) -> None:
        """Raise WeightsError if a saved config would not make this model again."""

    def embed(self, images: Images) -> Tensor:
        """The class token of each image after the final norm, ``(B, D)``."""
        return self.summary(self.encode(self.drop_tokens(*self.tokenize(images))[0], first=True))

    def compile(self, **options: Any) -> None:
        """Compile f in place, which takes most of the time; τ and φ are kernels already.

        The number of tokens is dynamic, so batches do not recompile. Recording runs a second, plain pass, and leaves
        the logits as they are. A copy of the model is not compiled. In inference on a GPU, everything after the
        tokenizer runs as one CUDA graph; weights may change in place, but call ``compile`` again after replacing them.
        ``mode="reduce-overhead"`` uses CUDA graphs in training too: gradients must be None before each forward pass.

        Args:
            options: of :func:`torch.compile`.
        """
        self.forward = CompiledModel(self, **options)  # type: ignore[assignment, method-assign]

    def with_tokenizer(self, tokenizer: str | Callable[[Images], Partition], **options: Any) -> "SpitModel":
        """The same model with another τ.

        The new model shares this one's parameters: training one trains both. It has its own mode (train, eval) and
        hooks, and is not compiled.

        Args:
            tokenizer: a name ("patch", "voronoi", "superpixel", or a registered one), made with its defaults, or with
                the present options if τ has that name already; or any callable from images to a Partition.
            options: of the tokenizer of that name, as in ``with_tokenizer("voronoi", cells=64)``.

        Example:
            >>> import spit, torch
            >>> model = spit.create_model("spit_tiny_16").with_tokenizer("patch")
            >>> model(torch.rand(1, 3, 64, 64), record=()).partition.counts
            tensor([16])
        """
        if isinstance(tokenizer, str):
            tokenizer = create_tokenizer(tokenizer, **self.config.options_for(tokenizer, options))
        elif isinstance(tokenizer, type):
            raise TypeError(f"expected the name of a tokenizer or an instance, {tokenizer.__name__}(…), got the class")
        elif not callable(tokenizer):
            raise TypeError(f"expected the name of a tokenizer or a callable from images to a Partition, "
                            f"got {tokenizer!r}")
        elif options:
            raise TypeError(f"options go with the name of a tokenizer, got {', '.join(options)} beside {tokenizer!r}; "
                            "make that one with its options")
        model = self.view()
        model.tokenizer = tokenizer
        model.config = self.config.replace(
            tokenizer=TOKENIZERS.name_of(tokenizer) or type(tokenizer).__name__,
            tokenizer_options=tokenizer.config() if isinstance(tokenizer, Tokenizer) else {})
        return model

    def with_backbone(self, name: str, **options: Any) -> "SpitModel":
        """The same model with another f that has the same parameters.

        As with :meth:`with_tokenizer`, the new model shares this one's parameters.

        Args:
            name: of the backbone: "transformer", "merging", or a registered one.
            options: of that backbone, as in ``with_backbone("merging", share=0.5)``.

        Raises:
            ValueError: the backbone has other parameters.

        Example:
            >>> import spit, torch
            >>> model = spit.create_model("spit_tiny_16").with_backbone("merging", share=0.75)
            >>> model(torch.rand(1, 3, 64, 64)).shape
            torch.Size([1, 1000])
        """
        model, config = self.view(), self.config.replace(backbone=name, backbone_options=options)
        with torch.device("meta"):
            backbone = config.create_backbone()
        shared = model.backbone.state_dict(keep_vars=True)
        for key, parameter in backbone.named_parameters():
            parameter.requires_grad_(key not in shared or shared[key].requires_grad)  # shared ones take it from here
        try:
            backbone.load_state_dict(shared, assign=True)
        except RuntimeError as error:
            raise ValueError(f"expected a backbone with the parameters of {self.config.backbone!r}, got {name!r} with "
                             "others; make a new model with it") from error
        model.backbone, model.config = backbone.train(self.training), config
        return model

    def view(self) -> "SpitModel":
        """A model that shares this one's tokenizer and parameters, with its own mode and hooks; it is not compiled."""
        shared = {id(tensor): tensor for tensors in (self.parameters(), self.buffers()) for tensor in tensors}
        return copy.deepcopy(self, {**shared, id(self.tokenizer): self.tokenizer})

    def check(self, images: Images) -> ImageBlocks:
        """The images as blocks of one size, if they have the model's channels and device."""
        blocks = image_blocks(images)
        for block in blocks:
            if block.shape[1] != self.config.channels:
                convert = "convert them"
                if block.shape[1] == 1:
                    batch = isinstance(images, Tensor) and images.ndim == 4
                    sizes = f"{'-1, ' if batch else ''}{self.config.channels}, -1, -1"
                    convert = f"repeat the grey with {'images' if batch else 'image'}.expand({sizes})"
                raise ValueError(
                    f"expected images of {self.config.channels} channels, got shape {tuple(block.shape)}; "
                    f"{convert}, or make a model with channels={block.shape[1]}")
            if block.device != self.device:
                raise ValueError(f"expected images on {self.device}, where the model is, got {block.device}; "
                                 "move one of them with .to()")
        return blocks


def create_from(config: ModelConfig) -> SpitModel:
    """A new model: of another library's backbone if the config says so."""
    kind = getattr(BACKBONES.get(config.backbone), "model_class", SpitModel)
    model: SpitModel = kind(config)
    return model


def _name(part: object) -> str:
    return getattr(part, "__name__", type(part).__name__)
