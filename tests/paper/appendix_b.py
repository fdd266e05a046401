"""Contrast and diffusion of App. B in float64."""

import numpy as np
from torch import Tensor

MEAN, SHAPE = (0.485, 0.456, 0.406), (0.539, 0.507, 0.404)


def contrast(image: Tensor) -> np.ndarray:
    """2 (1 − (1 − x^λ)^b) − 1, channel by channel."""
    planes = []
    for x, mean, shape in zip(image.double().numpy() / 255, MEAN, SHAPE, strict=True):
        b = -np.log(2) / np.log(1 - mean**shape)
        planes.append(2 * (1 - (1 - x**shape) ** b) - 1)
    return np.stack(planes)


def diffuse(planes: np.ndarray, steps: int = 4, kappa: float = 0.1, gamma: float = 0.5) -> np.ndarray:
    for _ in range(steps):
        south = np.diff(planes, axis=1, append=planes[:, -1:])
        east = np.diff(planes, axis=2, append=planes[:, :, -1:])
        flow_south, flow_east = south * np.exp(-((south / kappa) ** 2)), east * np.exp(-((east / kappa) ** 2))
        divergence = flow_south - np.pad(flow_south, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        divergence += flow_east - np.pad(flow_east, ((0, 0), (0, 0), (1, 0)))[:, :, :-1]
        planes = np.clip(planes + gamma * divergence, -1, 1)
    return planes
