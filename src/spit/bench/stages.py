"""Each stage of a model timed on one batch, and timm's ViT of the same size beside it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit.bench.timing import median_ms, peak_gib
from spit.evaluation.runner import PRECISIONS
from spit.model import SpitModel
from spit.registry import ARCHITECTURES, SIZES, create_model, load_model

Say = Callable[[str], None]
DROP_PATH = 0.2  # as the paper trains; LayerScale is in the models already


@dataclass(frozen=True)
class Setup:
    """What to measure; ``model`` is a name, or what :func:`spit.load_model` takes."""

    model: str
    size: int
    batch: int
    precision: str
    device: torch.device
    compiled: bool = True
    training: bool = True
    peer: bool = True
    rounds: int = 20

    def autocast(self) -> AbstractContextManager[Any]:
        """The precision, as a context; weights stay float32 in it."""
        return torch.autocast(self.device.type, PRECISIONS[self.precision], enabled=self.precision != "fp32")


@dataclass(frozen=True)
class Row:
    """One figure."""

    stage: str
    model: str
    ms_per_image: float
    images_per_second: float
    peak_gib: float | None = None
    tokens: float | None = None


def measure_stages(setup: Setup, images: Tensor, say: Say = lambda _: None) -> Iterator[Row]:
    """Tokenizer, features, inference and training, one after another.

    Args:
        say: called with what is about to be timed.

    Shape:
        images ``(B, 3, H, W)`` uint8 on the device.
    """
    model = create(setup.model).to(setup.device)
    tokenize, extract = model.tokenizer, model.extractor
    partition = tokenize(images)
    tokens = float(partition.counts.float().mean())
    yield _row(setup, "tokenizer", setup.model, lambda: tokenize(images), tokens, say)
    yield _row(setup, "features", setup.model, lambda: extract(images, partition), tokens, say)
    if setup.compiled:
        model.compile()
    yield from _network_rows(setup, setup.model, model, images, tokens, say)
    if setup.peer:
        yield from _peer_rows(setup, model.config.width, say)


def create(source: str) -> SpitModel:
    """A model to time: by name untrained, which takes as long as a trained one, or loaded."""
    if source.partition(".")[0] in ARCHITECTURES:
        return create_model(source, drop_path=DROP_PATH)
    return load_model(source)


def _peer_rows(setup: Setup, width: int, say: Say) -> Iterator[Row]:
    size = next((name for name, (own, _, _) in SIZES.items() if own == width), None)
    try:
        import timm
    except ImportError:
        return
    if size is None:  # timm has no ViT of this width
        return
    name = f"vit_{size}_patch16_224"
    peer = timm.create_model(name, img_size=setup.size, init_values=1e-5, drop_path_rate=DROP_PATH)
    peer = peer.to(setup.device)
    if setup.compiled:
        peer.compile()
    # Its input is what its data loader would give: normalised floats. Their values do not change its speed.
    images = torch.randn(setup.batch, 3, setup.size, setup.size, device=setup.device)
    images = images.to(PRECISIONS[setup.precision])
    yield from _network_rows(setup, f"timm {timm.__version__} {name}", peer, images, (setup.size // 16) ** 2, say)


def _network_rows(setup: Setup, name: str, network: nn.Module, images: Tensor, tokens: float,
                  say: Say) -> Iterator[Row]:
    def infer() -> None:
        with torch.inference_mode(), setup.autocast():
            network(images)

    network.eval()
    yield _row(setup, "inference", name, infer, tokens, say)
    if not setup.training:
        return
    network.train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, fused=setup.device.type == "cuda")
    classes = torch.randint(0, 1000, (len(images),), device=setup.device)

    def train() -> None:
        with setup.autocast():
            loss = F.cross_entropy(network(images), classes)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    yield _row(setup, "training", name, train, tokens, say)


def _row(setup: Setup, stage: str, name: str, function: Callable[[], Any], tokens: float, say: Say) -> Row:
    say(f"Timing {stage}, {name}")
    milliseconds = median_ms(function, setup.device, setup.rounds, warm_up=5)
    return Row(stage, name, milliseconds / setup.batch, 1000 * setup.batch / milliseconds,
               peak_gib(function, setup.device), tokens)
