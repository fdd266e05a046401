"""Our explanations where other people's packages ask for them; none of these is imported here."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spit.answers.explain import explain
from spit.attribution.methods import Method
from spit.model import SpitModel


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
