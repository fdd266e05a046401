"""Other people's explanations on our models: what pytorch-grad-cam and Quantus ask for.

Each is named as the argument that it serves. None of these packages is imported here.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spit.attribution.methods import Method, explain
from spit.embedder import take_class_token
from spit.images import Images
from spit.model import SpitModel
from spit.partition import Partition
from spit.tokens import Tokens, offsets_of


class ReshapeTransform:
    """The packed tokens of a layer as feature maps: pytorch-grad-cam's ``reshape_transform``.

    It looks at the images of every forward pass of the model, until :meth:`close`. Layers that make sense are
    ``model.backbone.blocks[i].norm1``. The maps are as large as the images: every pixel has its token's values.

    Args:
        model: the model that is given to pytorch-grad-cam.

    Shape:
        ``(Σ(N + 1), D)`` to ``(B, D, H, W)``.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import ReshapeTransform
        >>> model = spit.create_model("vit_tiny_16")
        >>> transform, images = ReshapeTransform(model), torch.rand(2, 3, 32, 32)
        >>> rows = model(images, record={"features": (-1,)}).features[11].values
        >>> transform(rows).shape
        torch.Size([2, 192, 32, 32])
    """

    def __init__(self, model: SpitModel) -> None:
        self._partition: Partition | None = None
        self._hook = model.register_forward_pre_hook(self._look)

    def _look(self, model: SpitModel, arguments: tuple[Images, ...]) -> None:
        with torch.no_grad():
            self._partition = model.tokenizer(arguments[0])

    def __call__(self, rows: Tensor) -> Tensor:
        """Paint the tokens, without the class token, on the pixels of the last images."""
        if self._partition is None:
            raise ValueError("expected a forward pass of the model before its tokens are reshaped, got none")
        offsets = offsets_of(self._partition.counts + 1)
        if len(rows) != int(offsets[-1]):
            raise ValueError(f"expected the {int(offsets[-1])} tokens of the last images, class tokens included, got "
                             f"{len(rows)} rows; choose a layer of model.backbone.blocks, such as norm1")
        tokens = take_class_token(Tokens(rows, offsets))[1]
        maps = self._partition.paint(tokens.values)
        if not isinstance(maps, Tensor):
            raise ValueError("expected images of one size, got several")
        return maps.movedim(-1, 1)

    def close(self) -> None:
        """Stop looking at the model's images."""
        self._hook.remove()


def explain_func(model: SpitModel, inputs: NDArray[np.floating[Any]] | Tensor, targets: Any,
                 method: str | Method = "relevance", **_: Any) -> NDArray[np.float32]:
    """Maps of one of our methods as Quantus calls for them: its ``explain_func``.

    ``explain_func_kwargs={"method": "flow"}`` chooses the method; what else Quantus passes, such as the device, is
    ignored. Inputs beyond [0, 1], as some of its metrics make, are clamped.

    Shape:
        inputs ``(B, C, H, W)`` to ``(B, 1, H, W)``.

    Example:
        >>> import numpy, spit
        >>> from spit.attribution import explain_func
        >>> model = spit.create_model("vit_tiny_16")
        >>> explain_func(model, numpy.zeros((2, 3, 32, 32)), numpy.array([1, 5])).shape
        (2, 1, 32, 32)
    """
    images = torch.as_tensor(inputs).to(model.device, torch.float32).clamp(0, 1)
    maps = explain(model, images, method, torch.as_tensor(targets))
    if not isinstance(maps, Tensor):
        raise ValueError("expected images of one size, got several")
    found: NDArray[np.float32] = maps[:, None].cpu().numpy()
    return found
