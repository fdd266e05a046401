"""What attention within the images of a packed batch costs on a GPU: our kernel beside torch's flash attention.

    python benchmarks/attention.py          # on a machine with CUDA

Random queries, keys and values in bf16. Numbers of tokens vary by a tenth, as those of superpixels do.
"""

from collections.abc import Callable

import torch
from provenance import arguments, launch, print_provenance
from torch import Tensor
from torch.nn.attention.varlen import varlen_attn

import spit
from spit.backbone.packed import attend
from spit.bench import median_ms
from spit.kernels.recording import STEP, round_up

SEED = 0
WIDTH = 64  # of a head
CASES = ((256, 288, 3), (256, 241, 12), (256, 500, 3), (128, 900, 3), (64, 2000, 3))  # images, tokens, heads


def main() -> None:
    arguments(__doc__).parse_args()
    if not torch.cuda.is_available():
        raise spit.SpitError("torch finds no CUDA device here; this benchmark measures one")
    print_provenance(f"random values; on {torch.cuda.get_device_name()}", SEED)
    print("| images | tokens | heads | flash: ms | with gradients | ours: ms | with gradients | difference |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for images, tokens, heads in CASES:
        packed, offsets, longest = _batch(images, tokens, heads)
        slope = torch.randn_like(packed[:, 0])

        def flash(packed: Tensor = packed, offsets: Tensor = offsets, longest: int = longest) -> Tensor:
            answer: Tensor = varlen_attn(*packed.unbind(1), offsets, offsets, longest, longest)
            return answer

        def ours(packed: Tensor = packed, offsets: Tensor = offsets, longest: int = longest) -> Tensor:
            answer: Tensor = attend(packed, offsets, longest)[0]
            return answer

        times = [f"{_time(way, packed, slope, gradients):.3f}" for way in (flash, ours) for gradients in (False, True)]
        print(f"| {images} | {tokens} | {heads} | {' | '.join(times)} | {(flash() - ours()).abs().max():.4f} |")


def _batch(images: int, tokens: int, heads: int) -> tuple[Tensor, Tensor, int]:
    """Query, key and value of random rows, ``(ΣN, 3, heads, d)``, their offsets, and a bound on an image's rows."""
    random = torch.Generator().manual_seed(SEED)
    counts = (tokens * (1 + 0.1 * torch.randn(images, generator=random))).int().clamp(min=1)
    offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0, dtype=torch.int32)]).cuda()
    packed = torch.randn(int(counts.sum()), 3, heads, WIDTH, generator=random).to("cuda", torch.bfloat16)
    return packed.requires_grad_(), offsets, round_up(int(counts.max()), STEP)


def _time(way: Callable[[], Tensor], packed: Tensor, slope: Tensor, gradients: bool) -> float:
    def call() -> None:
        with torch.set_grad_enabled(gradients):
            answer = way()
        if gradients:
            answer.backward(slope)
            packed.grad = None

    return median_ms(call, packed.device)


if __name__ == "__main__":
    launch(main)
