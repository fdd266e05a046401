"""Team: the processes of a run, one or as many as torchrun started. Only this module knows about ranks."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from spit.training import TrainingError


@dataclass(frozen=True)
class Team:
    """The processes of a run, of which the first writes files and reports."""

    rank: int  # of this process
    size: int
    device: torch.device  # of this process

    @staticmethod
    def join(device: str | torch.device = "cpu") -> "Team":
        """Join the processes that torchrun started, if it did; "cuda" then is this process's own GPU."""
        device = torch.device(device)
        if "RANK" not in os.environ:
            return Team(0, 1, device)
        if device.type == "cuda":
            local, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
            if local >= there:
                raise ValueError(f"expected a GPU for every process, got {there} for process {local} of this machine; "
                                 "give torchrun a smaller --nproc-per-node")
            device = torch.device("cuda", local)
            torch.cuda.set_device(device)
        backend = "nccl" if device.type == "cuda" else "gloo"
        store, rank, size = next(iter(rendezvous("env://")))
        store = distributed.PrefixStore(_meet(store, rank, size), store)  # type: ignore[attr-defined]
        distributed.init_process_group(backend, store=store, rank=rank, world_size=size,
                                       device_id=device if backend == "nccl" else None)
        return Team(rank, size, device)

    def leave(self) -> None:
        if distributed.is_initialized():
            distributed.destroy_process_group()

    @property
    def first(self) -> bool:
        return self.rank == 0

    @property
    def together(self) -> bool:
        """Whether torchrun made a group, even of one process."""
        return distributed.is_initialized()

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module, with gradients averaged over all processes in the backward pass."""
        return DistributedDataParallel(module, gradient_as_bucket_view=True) if self.together else module

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes, the same in each of them."""
        if self.together:
            values = values.clone()
            distributed.all_reduce(values)
        return values

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process; a single process does not wait."""
        return flag if self.size == 1 else bool(self.sum(torch.tensor(float(flag), device=self.device)) > 0)

    def agree(self, tensors: Iterable[Tensor]) -> None:
        """Copy tensors from the first process, in place."""
        if self.size > 1:
            for tensor in tensors:
                distributed.broadcast(tensor, 0)

    def number(self, value: int) -> int:
        """The first process's number."""
        tensor = torch.tensor(value, device=self.device)
        self.agree([tensor])
        return int(tensor)


def _meet(store: Any, rank: int, size: int) -> str:
    """A name for this group that no earlier group had.

    After a restart torchrun reuses the store, with the addresses of dead processes (pytorch/pytorch#135712), and its
    count of restarts differs between machines. So the first process chooses a name, and offers it to each other
    process under that process's own count of starts.
    """
    turn = store.add(f"spit/turn/{rank}", 1)
    if rank > 0:
        name = str(store.get(f"spit/name/{rank}/{turn}").decode())  # waits for it
        store.set(f"spit/here/{name}/{rank}", "")
        return name
    name = f"spit/meeting/{turn}"
    absent = set(range(1, size))
    give_up = time.monotonic() + store.timeout.total_seconds()
    while absent:
        for other in tuple(absent):
            store.set(f"spit/name/{other}/{store.add(f'spit/turn/{other}', 0)}", name)
            if store.check([f"spit/here/{name}/{other}"]):
                absent.remove(other)
        if time.monotonic() > give_up:
            raise TrainingError(f"expected {size} processes, but process {min(absent)} did not join; check its machine")
        time.sleep(0.02)
    return name


def part(whole: int, index: int, count: int) -> slice:
    """Part ``index`` of ``count`` nearly equal parts of a batch, cut between pairs (0 and 1, 2 and 3, …)."""
    start, stop = (2 * (whole // 2 * number // count) for number in (index, index + 1))
    return slice(start, whole if index == count - 1 else stop)
