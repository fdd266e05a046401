"""Whether an image has one mask: alone, in a batch, on the CPU and on CUDA.

    python benchmarks/masks.py [--limit 60]        # the batch alone where there is no CUDA

The first images of BSDS500's test set, at their own sizes, cut by the embedded ``spit_tiny_16`` with the defaults.
"""

import torch
from provenance import arguments, bsds_images, launch, print_provenance

import spit


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--limit", type=int, default=60, help="images")
    args = parser.parse_args()
    images = [spit.load_image(path) for path in bsds_images(args.shared)[: args.limit]]
    print_provenance(f"BSDS500 test, {len(images)} images")
    alone = {}
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        predictor = spit.load("spit_tiny_16", device)
        alone[device] = [predictor(image, crop=False).segment().mask[0] for image in images]
        report(f"alone and in a batch, {device}", alone[device], list(predictor(images, crop=False).segment().mask))
    if "cuda" in alone:
        report("CPU and CUDA", alone["cpu"], alone["cuda"])


def report(what: str, one: list[torch.Tensor], other: list[torch.Tensor]) -> None:
    """How many masks are equal, and in how many pixels the worst pair differs."""
    apart = [int((a.cpu() != b.cpu()).sum()) for a, b in zip(one, other, strict=True)]
    print(f"{what:28s} {sum(count == 0 for count in apart)} of {len(apart)} masks equal, "
          f"at most {max(apart)} pixels apart", flush=True)


if __name__ == "__main__":
    launch(main)
