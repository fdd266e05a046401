"""Operations on a GPU as one launch: recorded as a CUDA graph, and replayed for later batches of the same size.

A contraction of one image keeps a GPU busy for a quarter of a millisecond, in sixty launches that take Python ten times
as long. An operation can be recorded if it never waits for the device and depends on its tensors only through memory,
so that the launches are the same for every batch of a size.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable
from threading import RLock
from typing import Any

import torch
from torch import Tensor

SEEN_BEFORE = 2  # plain runs of a size before it is recorded; they also compile the kernels
SHARE = 1 / 16  # of the device's memory for the recordings of one object
BYTES = 16  # that a recording holds for each input number, by estimate
REMEMBERED = 1024  # sizes that are counted
STEP = 256  # numbers of rows are rounded up to multiples of this, or of a 32nd part of them
PARTS = 32

Tensors = tuple[Tensor, ...]
Operation = Callable[[Tensors, Any], Tensors]
Key = tuple[Operation, tuple[tuple[torch.Size, torch.dtype], ...], torch.device, int, Hashable]  # the int is the stream


class Recordings:
    """Operations that are recorded when a size comes a third time. The least recently used recordings make room.

    Call it with an operation, its tensors and its options, which are hashable and say everything else that the launches
    depend on; or with a function that returns the options and may wait for the device, which copies the tensors
    meanwhile. The answer is new memory, as of a plain run.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[Key, _Recording] = OrderedDict()
        self._given: dict[Hashable, Tensors] = {}  # what recordings read, shared by those that take the same tensors
        self._seen: Counter[Key] = Counter()
        self._pools: dict[tuple[torch.device, int], Any] = {}
        self._lock = RLock()
        self._running = False  # an operation; those that it calls are part of its recording

    def __call__(self, operation: Operation, tensors: Tensors,
                 options: Hashable | Callable[[], Hashable] = None) -> Tensors:
        first = tensors[0]
        if not first.is_cuda or torch.cuda.is_current_stream_capturing():
            return operation(tensors, options() if callable(options) else options)
        stream = torch.cuda.current_stream(first.device).cuda_stream
        place = (operation, tuple((tensor.shape, tensor.dtype) for tensor in tensors), first.device, stream)
        with self._lock:
            given = self._given.get(place)
            for static, tensor in zip(given or (), tensors, strict=given is not None):
                static.copy_(tensor)
            key = (*place, options() if callable(options) else options)
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]()
            if self._running or _numbers(key) > room_for(first.device):
                return operation(tensors, key[-1])
            self._running = True
            try:
                answer = operation(tensors, key[-1])  # also right before a recording: it fills caches of tables
                self._count(key)
                if self._seen[key] >= SEEN_BEFORE:
                    self._make_room(key)
                    self._held[key] = _Recording(operation, self._inputs(place, tensors), key[-1],
                                                 self._pool(first.device, stream))
                return answer
            finally:
                self._running = False

    def __len__(self) -> int:
        return len(self._held)

    def clear(self) -> None:
        """Forget all recordings, for instance because the memory that they read has moved."""
        with self._lock:
            for kept in (self._held, self._given, self._seen, self._pools):
                kept.clear()

    def _count(self, key: Key) -> None:
        if len(self._seen) >= REMEMBERED:
            self._seen.clear()
        self._seen[key] += 1

    def _make_room(self, key: Key) -> None:
        while self._held and _numbers(key) + sum(map(_numbers, self._held)) > room_for(key[2]):
            forgotten, _ = self._held.popitem(last=False)
            self._seen[forgotten] = 0
            if all(other[:-1] != forgotten[:-1] for other in self._held):
                del self._given[forgotten[:-1]]

    def _inputs(self, place: Hashable, tensors: Tensors) -> Tensors:
        if place not in self._given:
            with torch.inference_mode(False):  # inference tensors cannot be written to outside inference mode
                self._given[place] = tuple(tensor.clone() for tensor in tensors)
        return self._given[place]

    def _pool(self, device: torch.device, stream: int) -> Any:
        """Memory that the recordings of a stream share: they run one after another, and their answers are copied."""
        if (device, stream) not in self._pools:
            self._pools[device, stream] = torch.cuda.graph_pool_handle()
        return self._pools[device, stream]


class _Recording:
    def __init__(self, operation: Operation, given: Tensors, options: Hashable, pool: Any) -> None:
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=pool, capture_error_mode="thread_local"):
            self.answer = operation(given, options)

    def __call__(self) -> Tensors:
        self.graph.replay()
        return tuple(tensor.clone() for tensor in self.answer)


def room_for(device: torch.device) -> int:
    """Input numbers that all recordings together may have on a device."""
    return int(SHARE * torch.cuda.get_device_properties(device).total_memory / BYTES)


def _numbers(key: Key) -> int:
    shapes: Iterable[tuple[torch.Size, torch.dtype]] = key[1]
    return sum(shape.numel() for shape, _ in shapes)


def step_of(rows: int) -> int:
    """What a number of rows is rounded up to a multiple of: a few recordings then serve all batches."""
    return max(STEP, (1 << rows.bit_length()) // (2 * PARTS))


def round_up(number: int, step: int) -> int:
    """The next multiple of ``step``."""
    return -(-number // step) * step


replay = Recordings()
"""The recordings of kernels."""
