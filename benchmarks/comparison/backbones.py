"""What ``backbones.py`` says of a backbone, weights that hide nothing, and the tables."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from spit.seams.seam import Seam

Record = dict[str, Any]

FAMILIES = (  # the first whose pattern fits the start of a name
    ("BEiT-3", "beit3_"),
    ("BEiT, BEiT v2", "beit"),
    ("DeiT III", "deit3_"),
    ("DeiT, distilled", "deit_.*distilled"),
    ("DeiT", "deit_"),
    ("DINOv3", ".*_dinov3"),
    ("DINOv2", ".*_dinov2"),
    ("TIPS v2", ".*_tipsv2"),
    ("LingBot", ".*_lingbot"),
    ("Sapiens 2", ".*_sapiens2"),
    ("Perception Encoder", "vit_pe_"),
    ("RoPE-ViT, mixed frequencies", ".*_rope_mixed_"),
    ("RoPE-ViT", ".*_rope_"),
    ("EVA02", "eva02_"),
    ("EVA", "eva_"),
    ("AIMv2", "aimv2_"),
    ("FlexiViT", "flexivit_"),
    ("C-RADIO", ".*_radio_"),
    ("InternViT", ".*_intern300m_"),
    ("SigLIP, SigLIP 2", ".*_siglip_"),
    ("CLIP, OpenCLIP, MetaCLIP, DFN", ".*_clip_"),
    ("ViT with registers, mean or attention pooling", ".*_(reg|gap|map)"),
    ("ViT with parallel, post-norm or more blocks", ".*_(xp|rpn|18x2|36x1)_"),
    ("timm's test models", "test_"),
    ("ViT: AugReg, MAE, DINO, I-JEPA and others", "vit_"),
)
PREFIX = {"cls_token": "class", "class_token": "class", "class_embedding": "class", "dist_token": "distillation",
          "distillation_token": "distillation", "reg_token": "registers", "register_tokens": "registers"}
LAYER_SCALE = re.compile(r"gamma(_\d)?|lambda_?\d|layer_scale\w*")
HEADINGS = ("prefix", "positions", "head", "squares: tokens", "logits", "shuffled", "ragged", "moved", "maps")


@torch.no_grad()
def roughen(module: nn.Module, random: torch.Generator) -> None:
    """Random weights of a size at which each layer counts."""
    for part in module.modules():
        for name, weight in part.named_parameters(recurse=False):
            if LAYER_SCALE.fullmatch(name):
                weight.uniform_(0.1, 1, generator=random)
            elif weight.ndim > 1 and name in ("weight", "in_proj_weight") and not isinstance(part, nn.Embedding):
                weight.normal_(0, weight[0].numel() ** -0.5, generator=random)
            elif weight.ndim > 1 and name != "freqs":  # tables and tokens; frequencies of RoPE are random already
                weight.normal_(0, 0.5, generator=random)
            elif name == "weight":  # of a norm
                weight.normal_(1, 0.1, generator=random)
            elif name.endswith("bias"):
                weight.normal_(0, 0.1, generator=random)


def describe(seam: Seam) -> Record:
    """What a table says of a backbone."""
    return {"seam": type(seam).__name__, "patch": seam.patch, "size": list(seam.size), "width": seam.width,
            "blocks": len(seam.blocks), "classes": seam.num_classes, "prefix": prefix_of(seam),
            "positions": positions_of(seam), "head": head_of(seam)}


def prefix_of(seam: Seam) -> str:
    """Such as "class, 4 registers"."""
    found = [(PREFIX[last], rows.numel() // seam.width) for name, rows in seam.module.named_parameters()
             if (last := name.rpartition(".")[2]) in PREFIX]
    if not seam.prefix or sum(count for _, count in found) != seam.prefix:
        return str(seam.prefix or "none")
    return ", ".join(f"{count} {kind}".removesuffix("s" * (count == 1)) if kind == "registers" else kind
                     for kind, count in found if count)


def positions_of(seam: Seam) -> str:
    """Such as "table and RoPE"."""
    kinds = ["table"] if seam.positions(seam.grid) is not None else []
    rotation = seam.rotation(seam.grid)
    if rotation is not None:
        kinds.append("RoPE" if len(rotation) == 1 else "RoPE of each block")
    if seam.biased:
        kinds.append("relative bias")
    return " and ".join(kinds) or "none"


def head_of(seam: Seam) -> str:
    """What the head reads."""
    pool = getattr(seam, "pool", None) or getattr(seam.module, "attn_pool", None)
    if "Attention" in type(pool).__name__:
        return "attention pooling"
    both = seam.num_classes and seam.summary_width == 2 * seam.width
    if seam.reads_class:
        return "class and distillation token" if both else "class token"
    return "class token and mean" if both else "mean"


def works(record: Record, bar: float) -> bool:
    """Whether all differences are within the bar."""
    return "error" not in record and max(*record["squares"], record["shuffled"], record["ragged"]) <= bar


def reason(record: Record) -> str:
    """Why a backbone is not in a table."""
    if "error" in record:
        return str(record["error"])
    tokens, logits = record["squares"]
    return f"squares {tokens:.1e} and {logits:.1e}, shuffled {record['shuffled']:.1e}, ragged {record['ragged']:.1e}"


def tables(records: Sequence[Record], bar: float) -> str:
    """Markdown: the families of timm, the classes of other libraries, and what does not work."""
    texts = []
    for library, title in (("timm", "timm"), ("hf", "transformers"), ("torchvision", "torchvision"),
                           ("open_clip", "open_clip")):
        own = [record for record in records if record["name"].startswith(f"{library}:")]
        good = [record for record in own if works(record, bar)]
        if not own:
            continue
        groups: dict[str, list[Record]] = defaultdict(list)
        for record in good:
            name = record["name"].partition(":")[2]
            groups[family(name) if library == "timm" else f"`{name}`"].append(record)
        counts = library == "timm"
        lines = [("family", "names", "patch", *HEADINGS) if counts else ("class", *HEADINGS),
                 ("---", *["---:", "---"] * counts, *["---"] * 3, *["---:"] * 5, "---")]
        order = [*(title for title, _ in FAMILIES), "others"] if counts else list(groups)
        lines += [(name, *[str(len(groups[name])), joined(groups[name], "patch")] * counts, *row(groups[name]))
                  for name in order if name in groups]
        texts.append(f"### {title}: {len(good)} of {len(own)}\n\n" + "\n".join(
            f"| {' | '.join(cells)} |" for cells in lines))
    bad = [record for record in records if not works(record, bar)]
    if bad:
        texts.append("### Not within the bar\n\n| name | why |\n|---|---|\n" + "\n".join(
            f"| `{record['name']}` | {reason(record).replace('|', '/')} |" for record in bad))
    return "\n\n".join(texts) + "\n"


def family(name: str) -> str:
    """The family of a name of timm."""
    return next((title for title, pattern in FAMILIES if re.match(pattern, name)), "others")


def row(records: Sequence[Record]) -> list[str]:
    """What is common to the names of a family, or all values; the largest differences and the least of "moved"."""
    columns = [joined(records, key) for key in ("prefix", "positions", "head")]
    largest = [max(values) for values in zip(*(
        (*record["squares"], record["shuffled"], record["ragged"]) for record in records), strict=True)]
    maps = {record["attention"] for record in records}
    return [*columns, *(f"{value:.0e}" for value in largest), f"{min(record['moved'] for record in records):.0e}",
            "some" if len(maps) > 1 else "yes" if maps == {True} else "no"]


def joined(records: Sequence[Record], key: str) -> str:
    """Different values, in order."""
    return "; ".join(map(str, sorted({record[key] for record in records})))
