"""Models as graphs for other runtimes: ONNX and torch.export."""

from spit.lazy import lazily

__getattr__ = lazily(__name__, {
    "files": ["Exported", "export"],
    "graphs": ["TokenGraph"],
    "options": ["Exporting"],
})
