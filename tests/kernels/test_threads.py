import os
import threading
import time

import pytest
import torch

from spit.kernels.cpu.threads import Array, for_each_image


@pytest.fixture(params=[1, 2])
def _threads(request: pytest.FixtureRequest) -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("count", [0, 1, 2, 17])
def test_every_image_once(count: int) -> None:
    numbers = torch.arange(count)
    seen: list[int] = []
    answers = for_each_image(lambda number, shared: seen.append(int(number)) or number + shared, numbers, 10)
    assert sorted(seen) == list(range(count))
    assert answers == [number + 10 for number in range(count)]


def test_kernels_write_to_tensors_and_to_parts_of_them() -> None:
    rows, packed = torch.zeros(2, 3), torch.zeros(5)

    def fill(row: Array, part: Array, value: int) -> None:
        row[:], part[:] = value, len(part)

    for_each_image(fill, rows, packed.split([1, 4]), 7)
    assert rows.tolist() == [[7] * 3] * 2
    assert packed.tolist() == [1, 4, 4, 4, 4]


@pytest.mark.usefixtures("_threads")
def test_errors_come_back() -> None:
    def fail(b: int) -> None:
        if b == 2:
            raise ValueError("image 2")

    with pytest.raises(ValueError, match="image 2"):
        for_each_image(fail, torch.arange(4))


def test_images_run_at_once() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        meet = threading.Barrier(2, timeout=10)
        for_each_image(lambda _: meet.wait() and None, torch.arange(2))  # one thread alone would wait in vain
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_its_own_pool() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for_each_image(lambda _: None, torch.arange(4))
        child = os.fork()
        if child == 0:
            for_each_image(lambda _: None, torch.arange(4))
            os._exit(0)
        for _ in range(200):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                assert status == 0
                return
            time.sleep(0.05)
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child waits for threads that it does not have")
    finally:
        torch.set_num_threads(before)
