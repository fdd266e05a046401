"""Inference and training beside timm's ViT of the same width.

    python benchmarks/peers.py --model spit_base_16 --size 256 --images FOLDER      # on a machine with CUDA

Superpixels are part of our times; timm's model gets normalised tensors. Training is AdamW with drop path 0.2, and
LayerScale in timm's model if ours has it. On a GPU in bf16 and compiled: ours with CUDA graphs, as ``spit train``
compiles it, timm's in --peer-mode.
"""

import torch
from provenance import arguments, import_timm, launch, print_provenance
from torch import nn

import spit
from spit.bench import Timing, measure_network, measure_stages, photo_batch
from spit.bench.photos import sample_photos
from spit.bench.stages import DROP_PATH, model_to_time
from spit.data.folders import image_paths
from spit.devices import choose_device, machine
from spit.registry import SIZES

SEED = 0


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", help="a folder of photos; by default scikit-image's samples")
    parser.add_argument("--model", action="append", default=[], help="by default spit_tiny_16")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--batch", type=int, help="by default 256 with CUDA, 8 on a CPU")
    parser.add_argument("--precision", help="fp32, bf16 or fp16; by default bf16 with CUDA, fp32 on a CPU")
    parser.add_argument("--peer-mode", default="default", help="of torch.compile for timm's model")
    parser.add_argument("--no-training", action="store_true")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    args = parser.parse_args()
    device = torch.device(choose_device(args.device))
    timing = Timing(args.batch, args.precision, training=not args.no_training).on(device)
    paths = image_paths(args.images) if args.images else sample_photos()
    print_provenance(f"{len(paths)} photos, random squares of them at {args.size}²; on {machine(device)}, batches of "
                     f"{timing.batch}, {timing.precision}", SEED)
    networks = [(source, model := model_to_time(source), peer_of(model, args.size, device))
                for source in args.model or ["spit_tiny_16"]]
    for source, _, peer in networks:
        if peer is None:
            raise spit.SpitError(f"timm, or a ViT in it as wide as {source}, was not found: nothing to compare with")
    images = photo_batch(paths, timing.batch, args.size, args.size, SEED).to(device)
    print("| stage | model | tokens | ms/image | images/s | peak GiB | of timm's |\n|---|---|---:|---:|---:|---:|---:|")
    for source, model, (title, network) in networks:  # the values of timm's input do not change its speed
        rows = list(measure_stages(source, model, images, timing))
        theirs = list(measure_network(title, network, torch.randn_like(images, dtype=timing.dtype),
                                      (args.size // 16) ** 2, timing, mode=args.peer_mode))
        speeds = {row.stage: row.images_per_second for row in theirs}
        for row in (*rows, *theirs):
            peak = "" if row.peak_gib is None else f"{row.peak_gib:.2f}"
            ratio = f"{row.images_per_second / speeds[row.stage]:.2f}" if row in rows and row.stage in speeds else ""
            print(f"| {row.stage} | {row.model} | {row.tokens:.0f} | {row.ms_per_image:.4f} | "
                  f"{row.images_per_second:.0f} | {peak} | {ratio} |", flush=True)


def peer_of(model: spit.SpitModel, side: int, device: torch.device) -> tuple[str, nn.Module] | None:
    """timm's ViT of the same width for images of a side, with its title; None if timm is missing or has none."""
    size = next((name for name, (own, _, _) in SIZES.items() if own == model.config.width), None)
    try:
        timm = import_timm()
    except ImportError:
        return None
    if size is None:
        return None
    name = f"vit_{size}_patch16_224"
    peer = timm.create_model(name, img_size=side, init_values=model.config.layer_scale, drop_path_rate=DROP_PATH)
    return f"timm {timm.__version__} {name}", peer.to(device)


if __name__ == "__main__":
    launch(main)
