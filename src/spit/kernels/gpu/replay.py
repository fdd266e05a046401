"""Small batches as one launch: the launches of an operation are recorded as a CUDA graph and replayed.

A single image keeps a GPU busy for a quarter of a millisecond, in about sixty launches that take Python
ten times as long. A contraction or a refinement never waits for the device, and depends on the pixels only
through memory, so the launches are the same for every image of a size.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable
from threading import Lock
from typing import Any

import torch
from torch import Tensor

SMALL = 2**25  # input numbers: larger batches are not recorded, since launches cost less than the work
SEEN_BEFORE = 2  # plain runs of a size before it is recorded; they also compile the kernels
HELD = 2**26  # input numbers of all recordings together: each holds about 16 bytes per number

Tensors = tuple[Tensor, ...]
Operation = Callable[[Tensors, Any], Tensors]
Key = tuple[Operation, tuple[torch.Size, ...], torch.device, int, Hashable]  # the int is the stream


class _Recording:
    def __init__(self, operation: Operation, tensors: Tensors, options: Any) -> None:
        with torch.inference_mode(False):  # inference tensors cannot be written to outside inference mode
            self.given = tuple(tensor.clone() for tensor in tensors)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.answer = operation(self.given, options)

    def __call__(self, tensors: Tensors) -> Tensors:
        for given, tensor in zip(self.given, tensors, strict=True):
            given.copy_(tensor)
        self.graph.replay()
        return tuple(tensor.clone() for tensor in self.answer)


REMEMBERED = 1024  # sizes that are counted

_recordings: OrderedDict[Key, _Recording] = OrderedDict()
_seen: Counter[Key] = Counter()
_lock = Lock()


def replay(operation: Operation, tensors: Tensors, options: Hashable) -> Tensors:
    """The result of ``operation``, from a recording if the batch is small and its size was seen before."""
    first = tensors[0]
    shapes = tuple(tensor.shape for tensor in tensors)
    numbers = _numbers(shapes)
    if not first.is_cuda or numbers > SMALL:
        return operation(tensors, options)
    key = (operation, shapes, first.device, torch.cuda.current_stream(first.device).cuda_stream, options)
    with _lock:
        if key not in _recordings:
            if len(_seen) >= REMEMBERED:
                _seen.clear()
            _seen[key] += 1
            if _seen[key] <= SEEN_BEFORE or torch.cuda.is_current_stream_capturing():
                return operation(tensors, options)
            while _recordings and numbers + sum(_numbers(shapes) for _, shapes, *_ in _recordings) > HELD:
                forgotten, _ = _recordings.popitem(last=False)  # the least recently used
                _seen[forgotten] = 0
            _recordings[key] = _Recording(operation, tensors, options)
        _recordings.move_to_end(key)
        return _recordings[key](tensors)


def _numbers(shapes: Iterable[torch.Size]) -> int:
    return sum(shape.numel() for shape in shapes)
