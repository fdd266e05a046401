"""Models as graphs for other runtimes: ONNX and torch.export."""

from spit.export.files import Exported, Exporting, export
from spit.export.graphs import PixelGraph, TokenGraph

__all__ = ["Exported", "Exporting", "PixelGraph", "TokenGraph", "export"]
