"""Small batches as one launch: a contraction recorded as a CUDA graph and replayed.

A single image keeps a GPU busy for a quarter of a millisecond, in some sixty launches that cost Python
ten times as long. Nothing in a contraction waits for the device or depends on the pixels but through
memory, so the launches are the same for every image of a size.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from threading import Lock

import torch
from torch import Tensor

from spit.kernels.rules import Rules

SEEN_BEFORE = 2  # plain runs of a size before it is worth recording; they also compile the kernels
HELD = 2**25  # features that recordings may be for, all together: each holds its memory, about 30 bytes a feature


Contract = Callable[[Tensor, Rules], tuple[Tensor, Tensor]]
Key = tuple[torch.Size, torch.device, int, Rules]  # the number is the stream's: a recording serves one


class _Recording:
    def __init__(self, contract: Contract, features: Tensor, rules: Rules) -> None:
        self.features = features.clone()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.labels, self.counts = contract(self.features, rules)

    def __call__(self, features: Tensor) -> tuple[Tensor, Tensor]:
        self.features.copy_(features)
        self.graph.replay()
        return self.labels.clone(), self.counts.clone()


REMEMBERED = 1024  # sizes that are counted

_recordings: OrderedDict[Key, _Recording] = OrderedDict()
_seen: Counter[Key] = Counter()
_lock = Lock()


def replay(contract: Contract, features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """What ``contract`` answers, by a recording once the size has been seen before."""
    key = (features.shape, features.device, torch.cuda.current_stream(features.device).cuda_stream, rules)
    with _lock:
        if key not in _recordings:
            if len(_seen) >= REMEMBERED:
                _seen.clear()
            _seen[key] += 1
            if _seen[key] <= SEEN_BEFORE or torch.cuda.is_current_stream_capturing():
                return contract(features, rules)
            while _recordings and features.numel() + sum(shape.numel() for shape, *_ in _recordings) > HELD:
                forgotten, _ = _recordings.popitem(last=False)  # the one not used for longest
                _seen[forgotten] = 0
            _recordings[key] = _Recording(contract, features, rules)
        _recordings.move_to_end(key)
        return _recordings[key](features)
