"""Service: models, worker and limits put together; every route stands on it."""

import asyncio
import os
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import torch
from fastapi import Request
from torch import Tensor

from spit.predictor import Predictor
from spit.serve.batching import Batcher, Work
from spit.serve.errors import ApiError, log
from spit.serve.metrics import Metrics
from spit.serve.models import Models
from spit.serve.options import MIB, ServeOptions
from spit.serve.pictures import Pictures
from spit.serve.uploads import Upload

Answer = TypeVar("Answer")
DECODERS = min(8, max(2, (os.cpu_count() or 1) // 2))  # threads
BATCH = {"cpu": 8, "cuda": 32}
WARM_UP = 600.0  # seconds that compiling may take


class Service:
    """The models, the worker that runs them, and what it keeps.

    Args:
        options: limits.
        models: loaded.
    """

    def __init__(self, options: ServeOptions, models: Models) -> None:
        self.options, self.models = options, models
        self.metrics = Metrics()
        batch = options.batch or BATCH[models.device.partition(":")[0]]
        self.batcher = Batcher(options.queue, batch, self.metrics.observe_batch)
        self.metrics.taken.set_function(lambda: self.batcher.taken)
        self.metrics.waiting.set_function(self.batcher.waiting)
        self.pictures = Pictures(options.pictures, options.picture_megabytes * MIB)
        self.jobs: dict[str, dict[str, int]] = {}  # progress of long answers, by the page's names
        self.ready = False
        self._decoders = ThreadPoolExecutor(DECODERS, "spit-decoder")
        self._decoded = asyncio.Semaphore(2 * batch)  # bounds the memory of decoded images

    async def start(self) -> None:
        """Start the worker; it compiles the kernels first."""
        self.batcher.start()
        self._warm = asyncio.create_task(self._warm_up())

    async def _warm_up(self) -> None:
        def work(_: Sequence[Any]) -> list[None]:
            warm_up(self.models.get())
            return [None]

        await self.batcher.run(work, None, time.monotonic() + WARM_UP)
        self.ready = True
        log.info("ready")

    async def stop(self) -> None:
        """Finish what was taken."""
        await asyncio.to_thread(self.batcher.stop)
        self._warm.cancel()
        self._decoders.shutdown()

    async def aside(self, work: Callable[[], Answer]) -> Answer:
        """Light work of the CPU, beside the worker."""
        return await asyncio.get_running_loop().run_in_executor(self._decoders, work)

    async def run(self, request: Request, work: Work, item: Any = None, key: Hashable = None) -> Any:
        """The worker's answer for an item."""
        try:
            return await self.batcher.run(work, item, request.state.deadline, key)
        except ApiError as error:
            if error.code == "time_limit" and not self.ready:
                raise still_loading() from None
            raise

    async def alone(self, request: Request, work: Callable[[], Answer]) -> Answer:
        """The worker's answer to a job that cannot be batched."""
        found: Answer = await self.run(request, lambda _: [work()])
        return found

    async def with_images(self, request: Request, files: Sequence[bytes], work: Work,
                          key: Callable[[Sequence[Upload]], Hashable] = lambda uploads: None,
                          item: Callable[[list[Tensor]], Any] = lambda images: images,
                          side: int | None = None) -> Any:
        """Decode the images of a request beside the worker, then let it answer.

        Args:
            files: as they were sent.
            work: takes the items of a batch, and returns an answer for each.
            key: what jobs must have in common to run together.
            item: makes an item of the images.
            side: images are made smaller if their longer side exceeds it.
        """
        most = self.options.max_pixels
        uploads = [Upload.of(data, most) for data in files]
        if sum(one.width * one.height for one in uploads) > most:
            raise ApiError("image_too_large", f"The images have more than {most:,} pixels together.")
        async with self._decoded:
            images = [await self.aside(partial(one.decode, most, side)) for one in uploads]
            return await self.run(request, work, item(images), key(uploads))


def still_loading() -> ApiError:
    """The answer before the model is ready; compiling the kernels takes a minute once on a machine."""
    return ApiError("busy", "The service is loading its model.", {"Retry-After": "2"})


def warm_up(predictor: Predictor) -> None:
    """Compile the kernels that most answers use."""
    started = time.monotonic()
    image = (torch.arange(3 * 96 * 96) * 37 % 251).view(3, 96, 96).to(torch.uint8)
    prediction = predictor(image, crop=False)
    prediction.segment()
    predictor.model.tokenizer(image.to(predictor.device))
    log.info("kernels loaded in %.1f s", time.monotonic() - started)
