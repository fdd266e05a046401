import os
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch
from skimage import data

import spit
from spit.kernels.concurrency import torch_threads
from spit.kernels.numba.threads import for_each_image


@pytest.fixture(params=[1, 2])
def _threads(request: pytest.FixtureRequest) -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("count", [0, 1, 2, 17])
def test_every_image_once(count: int) -> None:
    seen: list[int] = []
    answers = for_each_image(lambda number: seen.append(number) or number + 10, range(count))
    assert sorted(seen) == list(range(count))
    assert answers == [number + 10 for number in range(count)]


def test_images_of_several_arguments_and_no_thread_stays() -> None:
    before = threading.active_count()
    with torch_threads(3):
        assert for_each_image(lambda row, number: row.sum() * number, np.ones((5, 4)), range(5)) == [0, 4, 8, 12, 16]
    assert threading.active_count() == before


@pytest.mark.usefixtures("_threads")
def test_errors_come_back() -> None:
    def fail(b: int) -> None:
        if b == 2:
            raise ValueError("image 2")

    with pytest.raises(ValueError, match="image 2"):
        for_each_image(fail, range(4))


def test_images_run_at_once() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        meet = threading.Barrier(2, timeout=10)
        for_each_image(lambda _: meet.wait() and None, range(2))  # one thread alone would wait in vain
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("tokenizer", [
    spit.SuperpixelTokenizer(levels=2, max_tokens=9, refine=1), spit.VoronoiTokenizer(9), spit.PatchTokenizer(4),
])
def test_labels_do_not_depend_on_threads(tokenizer: spit.Tokenizer) -> None:
    images = torch.randint(0, 256, (5, 3, 24, 31), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    with torch_threads(1):
        one = tokenizer(images)
    with torch_threads(3):
        three = tokenizer(images)
    assert torch.equal(one.labels, three.labels)
    assert torch.equal(one.offsets, three.offsets)


@pytest.mark.parametrize("options", [{}, {"compactness": 3.0, "refine": 1}, {"mask": True}], ids=str)
def test_labels_of_one_large_image_do_not_depend_on_threads(options: dict[str, Any]) -> None:
    image = np.tile(data.coffee(), (2, 2, 1))[:701, :1103]  # large enough to be worth dividing, and not evenly
    image = np.maximum(image, np.uint8(60))  # with ties
    if options.get("mask"):
        options = {"mask": image[..., 0] > 80}
    partitions = []
    for count in (1, 2, 16):
        with torch_threads(count):
            partitions.append(spit.superpixels(image, 700, **options))
    assert partitions[0].max() >= 700
    assert all(np.array_equal(partition, partitions[0]) for partition in partitions)


@pytest.mark.parametrize("count", [1, 2, 16])
def test_labels_do_not_depend_on_the_order_of_images(count: int) -> None:
    images = torch.randint(0, 5, (20, 3, 24, 31), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(1))
    tokenizer = spit.SuperpixelTokenizer(method="tree", compactness=0.4, max_tokens=9, refine=2)
    with torch_threads(count):
        labels = tokenizer(images[order]).labels
    for label_map, index in zip(labels, order, strict=True):
        image = images[index].movedim(0, -1).numpy()
        assert np.array_equal(label_map + 1, spit.superpixels(image, 9, min_size=1, refine=2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_its_own_pool() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for_each_image(lambda _: None, range(4))
        child = os.fork()
        if child == 0:
            for_each_image(lambda _: None, range(4))
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


def test_torch_s_number_is_set_and_set_back() -> None:
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        with torch_threads(None):
            assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
    with pytest.raises(RuntimeError, match="stop"), torch_threads(before + 1):
        raise RuntimeError("stop")
    assert torch.get_num_threads() == before
