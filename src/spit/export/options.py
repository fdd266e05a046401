"""The options of export."""

from dataclasses import dataclass
from typing import Literal

from spit.options import Options, option


@dataclass(frozen=True)
class Exporting(Options):
    """What to write."""

    format: Literal["onnx", "torch"] = option(
        "onnx", "File format: onnx (ONNX, what spit.runtime reads) or torch (torch.export, what torch.export.load "
                "reads)")
    precision: Literal["float32", "float16", "int8"] = option(
        "float32", "Numbers of the network: float32, float16, or int8 (ONNX only: matrices of 8 bits, dynamic "
                   "quantisation by onnxruntime)")
    outputs: Literal["all", "classes"] = option(
        "all", "What the graph returns: all (logits, class_token and tokens), or classes (logits and class_token: the "
               "last block computes nothing else, which is faster)")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format == "torch" and self.precision == "int8":
            raise ValueError("expected precision float32 or float16 with format torch, got int8; format onnx has it")
