"""Masks as COCO's run lengths, column by column, in the compressed string of pycocotools."""

import numpy as np
from numpy.typing import NDArray


def encode_mask(mask: NDArray[np.bool_]) -> dict[str, object]:
    """``{"size": [H, W], "counts": string}`` as pycocotools reads it.

    Example:
        >>> import numpy as np
        >>> from spit.serve.rle import encode_mask
        >>> encode_mask(np.array([[False, True], [False, True]]))
        {'size': [2, 2], 'counts': '22'}
    """
    flat = mask.ravel(order="F")
    ends = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff(np.concatenate([[0], ends, [flat.size]])).tolist()
    if flat.size and flat[0]:
        runs.insert(0, 0)  # the first run is background
    return {"size": [int(side) for side in mask.shape], "counts": _compress(runs)}


def decode_mask(size: tuple[int, int], counts: str) -> NDArray[np.bool_]:
    """The inverse of :func:`encode_mask`."""
    runs = np.array(_expand(counts), np.int64)
    flat = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    mask: NDArray[np.bool_] = flat.reshape(size, order="F")
    return mask


def _compress(runs: list[int]) -> str:
    """Five bits a character, from 48; from the fourth on, a run is the difference to the one two before."""
    text = []
    for index, run in enumerate(runs):
        rest = run - runs[index - 2] if index > 2 else run
        while True:
            bits, rest = rest & 31, rest >> 5
            more = rest != -1 if bits & 16 else rest != 0
            text.append(chr((bits | 32 if more else bits) + 48))
            if not more:
                break
    return "".join(text)


def _expand(counts: str) -> list[int]:
    runs: list[int] = []
    value = shift = 0
    for character in counts:
        bits = ord(character) - 48
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            if bits & 16:
                value -= 1 << shift
            runs.append(value + runs[-2] if len(runs) > 2 else value)
            value = shift = 0
    return runs
