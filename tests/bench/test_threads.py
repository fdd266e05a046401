import threading

import pytest
import torch

from spit.bench.threads import cpu_threads, map_threads


def test_the_number_is_set_and_set_back() -> None:
    before = torch.get_num_threads()
    with cpu_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        with cpu_threads(None):
            assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_items_run_at_once_on_one_thread_each_and_keep_their_order() -> None:
    together = threading.Barrier(3, timeout=30)

    def work(item: int) -> tuple[int, int]:
        together.wait()
        return item, torch.get_num_threads()

    before = torch.get_num_threads()
    with cpu_threads(3):
        assert map_threads(work, range(6)) == [(item, 1) for item in range(6)]
    assert torch.get_num_threads() == before


def test_an_error_is_raised_and_the_number_set_back() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        map_threads(lambda item: 1 // item, [1, 0])
    assert torch.get_num_threads() == before
