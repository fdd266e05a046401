"""timm's interface, and the hub's, for scripts that were written for other models: functions that take a model.

:class:`spit.SpitModel` has them as its methods and attributes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from spit.backbone import Recorder
from spit.heads import ClassHead
from spit.images import Images
from spit.tokens import Tokens

if TYPE_CHECKING:
    from spit.model import SpitModel

SIZE = 224  # side of the images, if the config does not say
WITH_LAST_BLOCK = (99999,)  # timm's mark for parameters that belong to the group before them


def num_features(model: "SpitModel") -> int:
    """Columns D of a token."""
    return model.config.width


def num_classes(model: "SpitModel") -> int:
    """Logits of h; 0 if the model returns the class token."""
    return model.config.num_classes


def pretrained_cfg(model: "SpitModel") -> dict[str, Any]:
    """Preprocessing in timm's words, for ``timm.data.resolve_model_data_config(model)``; φ normalises by itself."""
    config = model.config
    size = config.eval_size or config.train_size or SIZE
    return {"input_size": (config.channels, size, size), "fixed_input_size": False,
            "crop_pct": config.eval_crop or 1.0, "crop_mode": "center" if config.eval_crop else "squash",
            "interpolation": "bicubic", "mean": (0.0,) * config.channels, "std": (1.0,) * config.channels,
            "num_classes": config.num_classes, "classifier": "head.linear"}


def feature_info(model: "SpitModel") -> list[dict[str, Any]]:
    """The blocks: name, width and reduction, which is 1 because ``reshape=True`` paints features on the pixels."""
    return [{"module": f"backbone.blocks.{index}", "num_chs": model.config.width, "reduction": 1}
            for index in range(_depth(model))]


def forward_features(model: "SpitModel", images: Images) -> Tokens:
    """Tokens after the final norm, the class token first in each image, ``(Σ(N + 1), D)``."""
    return model.encode(model.drop_tokens(*model.tokenize(images))[0])


def forward_head(model: "SpitModel", tokens: Tokens, pre_logits: bool = False) -> Tensor:
    """Logits ``(B, num_classes)`` of what ``forward_features`` returned; its class token if ``pre_logits``."""
    summary = model.summary(tokens)
    logits: Tensor = summary if pre_logits else model.head(summary)
    return logits


def get_classifier(model: "SpitModel") -> nn.Module:
    """The linear layer of h; an identity if there is none."""
    return model.head.linear or nn.Identity()


def reset_classifier(model: "SpitModel", num_classes: int) -> None:
    """Give the model a new, untrained head; the class names of the old one are dropped."""
    model.config = model.config.replace(num_classes=num_classes, class_names=())
    like = next(model.parameters())
    model.head = ClassHead(model.summary_width, num_classes).to(like.device, like.dtype).train(model.training)
    if model.compiled is not None:
        model.compiled.clear()


def no_weight_decay(model: "SpitModel") -> set[str]:
    """Parameters that should not decay, beside those of one dimension."""
    return {"embedder.class_token"}


def group_matcher(model: "SpitModel", coarse: bool = False) -> dict[str, Any]:
    """Patterns that sort parameters by depth, for layer decay: embedder, each block (all if coarse), head."""
    if not coarse:
        _depth(model)
    blocks: Any = r"^backbone" if coarse else [(r"^backbone\.blocks\.(\d+)", None), (r"^backbone", WITH_LAST_BLOCK)]
    return {"stem": r"^(?:extractor|embedder)", "blocks": blocks}


def set_grad_checkpointing(model: "SpitModel", enable: bool = True) -> None:
    """Recompute each block in the backward pass instead of keeping its inside, which saves memory."""
    if not hasattr(model.backbone, "checkpointing"):
        raise TypeError(f"backbone {model.config.backbone!r} has no attribute checkpointing to set; "
                        "backbone 'transformer' has")
    model.backbone.checkpointing = enable


def get_intermediate_layers(model: "SpitModel", images: Images, n: int | Sequence[int] = 1, reshape: bool = False,
                            norm: bool = True, return_class_token: bool = False) -> tuple[Any, ...]:
    """The tokens that leave some blocks, without the class token; none are dropped in training.

    Args:
        n: how many of the last blocks, or which blocks.
        reshape: return maps ``(B, D, H, W)`` instead of Tokens ``(ΣN, D)``, each pixel with its region's features;
            one ``(D, H, W)`` per image if sizes differ.
        norm: apply the final norm.
        return_class_token: return pairs with the class tokens ``(B, D)``.
    """
    depth = _depth(model)
    if isinstance(n, int) and not 1 <= n <= depth:
        raise ValueError(f"expected n of 1 to {depth}, the number of blocks, got {n}")
    layers = range(depth - n, depth) if isinstance(n, int) else n
    recorder = Recorder.of({"features": layers}, depth)
    partition, features = model.tokenize(images)
    model.encode(features, recorder)
    answers = []
    for layer in layers:
        tokens = recorder.features[layer % depth]
        rows = tokens.replace(model.backbone.norm(tokens.values)) if norm else tokens
        class_token, others = rows.first, model.tokens_of(rows)
        answer: Any = others
        if reshape:
            painted = partition.paint(others.values)
            answer = painted.movedim(-1, 1) if isinstance(painted, Tensor) else tuple(
                image.movedim(-1, 0) for image in painted)
        answers.append((answer, class_token) if return_class_token else answer)
    return tuple(answers)


def from_pretrained(cls: type["SpitModel"], /, source: Any, **options: Any) -> "SpitModel":
    """Load a model from a hub id, a folder or a name; see :func:`spit.hub.from_pretrained`."""
    from spit.hub import from_pretrained  # which needs this class

    return from_pretrained(source, **options)


def save_pretrained(model: "SpitModel", folder: Any, **options: Any) -> Any:
    """Save the model and a card into a folder; see :func:`spit.hub.save_pretrained`."""
    from spit.hub import save_pretrained

    return save_pretrained(model, folder, **options)


def push_to_hub(model: "SpitModel", repo: str, **options: Any) -> str:
    """Upload the model and a card to the Hugging Face hub; see :func:`spit.hub.push_to_hub`."""
    from spit.hub import push_to_hub

    return push_to_hub(model, repo, **options)


def _depth(model: "SpitModel") -> int:
    blocks = getattr(model.backbone, "blocks", None)
    if not isinstance(blocks, nn.ModuleList | nn.Sequential):
        raise TypeError(f"backbone {model.config.backbone!r} has no blocks, a torch.nn.ModuleList, to tell apart")
    return len(blocks)
