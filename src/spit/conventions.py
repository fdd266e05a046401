"""timm's interface, and the hub's, for scripts that were written for other models."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn

from spit.backbone import Recorder
from spit.config import ModelConfig
from spit.embedder import Embedder, take_class_token
from spit.heads import ClassHead
from spit.images import Images
from spit.partition import Partition
from spit.tokens import Tokens

if TYPE_CHECKING:
    from spit.model import SpitModel

SIZE = 224  # side of the images, if the config does not say
WITH_LAST_BLOCK = (99999,)  # timm's mark for parameters that belong to the group before them


class Conventions(nn.Module):
    """The attributes and methods of a timm model that scripts for training and probing use.

    Example:
        >>> import spit, torch
        >>> model = spit.create_model("vit_tiny_16", num_classes=10)
        >>> model.num_features, model.num_classes
        (192, 10)
        >>> tokens = model.forward_features(torch.rand(2, 3, 32, 32))
        >>> tokens.counts.tolist()  # the class token and 4 patches
        [5, 5]
        >>> model.forward_head(tokens).shape
        torch.Size([2, 10])
        >>> [layer] = model.get_intermediate_layers(torch.rand(2, 3, 32, 32), reshape=True)
        >>> layer.shape
        torch.Size([2, 192, 32, 32])
        >>> model.reset_classifier(3)
        >>> model(torch.rand(2, 3, 32, 32)).shape
        torch.Size([2, 3])
    """

    config: ModelConfig
    embedder: Embedder
    backbone: Any
    head: ClassHead
    tokenize: Callable[[Images], tuple[Partition, Tokens]]
    drop_tokens: Callable[[Partition, Tokens], tuple[Tokens, Tensor | None]]
    encode: Callable[..., Tokens]
    compiled: Any

    @property
    def num_features(self) -> int:
        """Columns D of a token."""
        return self.config.width

    embed_dim = num_features

    @property
    def num_classes(self) -> int:
        """Logits of h; 0 if the model returns the class token."""
        return self.config.num_classes

    @property
    def pretrained_cfg(self) -> dict[str, Any]:
        """Preprocessing in timm's words, for ``timm.data.resolve_model_data_config(model)``; φ normalises by itself."""
        size = self.config.eval_size or self.config.train_size or SIZE
        return {"input_size": (self.config.channels, size, size), "fixed_input_size": False,
                "crop_pct": self.config.eval_crop or 1.0,
                "crop_mode": "center" if self.config.eval_crop else "squash", "interpolation": "bicubic",
                "mean": (0.0,) * self.config.channels, "std": (1.0,) * self.config.channels,
                "num_classes": self.num_classes, "classifier": "head.linear"}

    default_cfg = pretrained_cfg

    @property
    def feature_info(self) -> list[dict[str, Any]]:
        """The blocks: name, width and reduction, which is 1 because ``reshape=True`` paints features on the pixels."""
        return [{"module": f"backbone.blocks.{index}", "num_chs": self.num_features, "reduction": 1}
                for index in range(self._depth())]

    def forward_features(self, images: Images) -> Tokens:
        """Tokens after the final norm, the class token first in each image, ``(Σ(N + 1), D)``."""
        return self.encode(self.drop_tokens(*self.tokenize(images))[0])

    def forward_head(self, tokens: Tokens, pre_logits: bool = False) -> Tensor:
        """Logits ``(B, num_classes)`` of what :meth:`forward_features` returned; its class token if ``pre_logits``."""
        class_token = take_class_token(tokens)[0]
        return class_token if pre_logits else self.head(class_token)

    def get_classifier(self) -> nn.Module:
        """The linear layer of h; an identity if there is none."""
        return self.head.linear or nn.Identity()

    def reset_classifier(self, num_classes: int) -> None:
        """Give the model a new, untrained head; the class names of the old one are dropped."""
        self.config = self.config.replace(num_classes=num_classes, class_names=())
        like = self.embedder.class_token
        self.head = ClassHead(self.config.width, num_classes).to(like.device, like.dtype).train(self.training)
        if self.compiled is not None:
            self.compiled.clear()

    def no_weight_decay(self) -> set[str]:
        """Parameters that should not decay, beside those of one dimension."""
        return {"embedder.class_token"}

    def group_matcher(self, coarse: bool = False) -> dict[str, Any]:
        """Patterns that sort parameters by depth, for layer decay: embedder, each block (all if coarse), head."""
        if not coarse:
            self._depth()
        blocks: Any = r"^backbone" if coarse else [(r"^backbone\.blocks\.(\d+)", None), (r"^backbone", WITH_LAST_BLOCK)]
        return {"stem": r"^(?:extractor|embedder)", "blocks": blocks}

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Recompute each block in the backward pass instead of keeping its inside, which saves memory."""
        if not hasattr(self.backbone, "checkpointing"):
            raise TypeError(f"backbone {self.config.backbone!r} has no attribute checkpointing to set; "
                            "backbone 'transformer' has")
        self.backbone.checkpointing = enable

    def get_intermediate_layers(self, images: Images, n: int | Sequence[int] = 1, reshape: bool = False,
                                norm: bool = True, return_class_token: bool = False) -> tuple[Any, ...]:
        """The tokens that leave some blocks, without the class token; none are dropped in training.

        Args:
            n: how many of the last blocks, or which blocks.
            reshape: return maps ``(B, D, H, W)`` instead of Tokens ``(ΣN, D)``, each pixel with its region's features;
                one ``(D, H, W)`` an image if sizes differ.
            norm: apply the final norm.
            return_class_token: return pairs with the class tokens ``(B, D)``.
        """
        depth = self._depth()
        if isinstance(n, int) and not 1 <= n <= depth:
            raise ValueError(f"expected n of 1 to {depth}, the number of blocks, got {n}")
        layers = range(depth - n, depth) if isinstance(n, int) else n
        recorder = Recorder.of({"features": layers}, depth)
        partition, features = self.tokenize(images)
        self.encode(features, recorder)
        found = []
        for layer in layers:
            tokens = recorder.features[layer % depth]
            tokens = tokens.replace(self.backbone.norm(tokens.values)) if norm else tokens
            class_token, tokens = take_class_token(tokens)
            answer: Any = tokens
            if reshape:
                painted = partition.paint(tokens.values)
                answer = painted.movedim(-1, 1) if isinstance(painted, Tensor) else tuple(
                    image.movedim(-1, 0) for image in painted)
            found.append((answer, class_token) if return_class_token else answer)
        return tuple(found)

    @classmethod
    def from_pretrained(cls, source: Any, **options: Any) -> Any:
        """Load a model from a hub id, a folder or a name; see :func:`spit.hub.from_pretrained`."""
        from spit.hub import from_pretrained  # which needs this class

        return from_pretrained(source, **options)

    def save_pretrained(self, folder: Any, **options: Any) -> Any:
        """Save the model and a card into a folder; see :func:`spit.hub.save_pretrained`."""
        from spit.hub import save_pretrained

        return save_pretrained(cast("SpitModel", self), folder, **options)

    def push_to_hub(self, repo: str, **options: Any) -> str:
        """Upload the model and a card to the Hugging Face hub; see :func:`spit.hub.push_to_hub`."""
        from spit.hub import push_to_hub

        return push_to_hub(cast("SpitModel", self), repo, **options)

    def _depth(self) -> int:
        blocks = getattr(self.backbone, "blocks", None)
        if not isinstance(blocks, nn.ModuleList):
            raise TypeError(f"backbone {self.config.backbone!r} has no blocks, a torch.nn.ModuleList, to tell apart")
        return len(blocks)
