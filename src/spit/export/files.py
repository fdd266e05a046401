"""``export``: a model as one file, checked against torch before it is written."""

import copy
import io
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from spit import __version__
from spit.errors import MissingExtra, SpitError
from spit.export.check import differences
from spit.export.graphs import TokenGraph
from spit.export.options import Exporting
from spit.features import FeatureExtractor
from spit.files import write_whole
from spit.model import SpitModel
from spit.runtime.pipeline import FORMAT, KEY, make_parts
from spit.timm_methods import SIZE
from spit.tokenizers import Tokenizer
from spit.weights import digest

OPSET = 20
MOST_TOKENS = 4096
TOLERANCES = {"float32": 1e-4, "float16": 0.05}  # of logits, over the largest if that is above 1; int8 has none
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
Run = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Exported:
    """What was written, and how far its logits are from torch's.

    Attributes:
        size: of the file, in bytes.
        differences: the largest absolute difference of logits, by the number of tokens.
        warning: what :mod:`spit.runtime` cannot do with the file, and what to do; empty if it runs it on images.
    """

    path: Path
    size: int
    differences: Mapping[int, float]
    warning: str = ""

    @property
    def difference(self) -> float:
        """The largest of the differences."""
        return max(self.differences.values())


def export(model: SpitModel, path: str | os.PathLike[str], exporting: Exporting | None = None,
           progress: Callable[[str], None] = lambda stage: None) -> Exported:
    """Write a model as one file that runs without spit, and without torch if it is ONNX.

    The graph is γ, f and h of one image from token features ``(N, F)``, N from 1 to 4,096. Its outputs are ``logits``,
    ``class_token`` and ``tokens``, the last one not with ``outputs="classes"``. What :mod:`spit.runtime` needs beside
    it is in the file's metadata.

    The logits of ten token counts are compared with torch's before anything is written.

    Args:
        model: in evaluation mode, on the CPU; it is not modified.
        path: of the file. An old one is replaced when the new one is whole.
        exporting: format, precision and outputs.
        progress: called with each stage.

    Raises:
        SpitError: the logits are further from torch's than 1e-4 (float32) or 0.05 (float16), relative to the largest
            if that is above 1.
        MissingExtra: onnx, onnxscript or onnxruntime is not installed.
    """
    exporting, path = exporting or Exporting(), Path(path)
    if not isinstance(model, SpitModel):
        raise TypeError(f"expected a model of spit to export, got {type(model).__name__}; a predictor has one, "
                        "predictor.model")
    if model.training or model.device.type != "cpu":
        raise ValueError(f"expected a model in evaluation mode on the CPU, got one on {model.device}"
                         f"{', in training mode' if model.training else ''}; call model.eval().cpu()")
    if not path.parent.is_dir() or path.is_dir():
        raise SpitError(f"expected a file in a folder that exists, got {path}; choose another name, or make the folder")
    if exporting.format == "onnx":
        for package in PACKAGES:
            if find_spec(package) is None:
                raise MissingExtra(package, "onnx", "exporting to ONNX")
    graph = TokenGraph(model, exporting.outputs).eval()
    about = describe(model, exporting)
    description = json.dumps(about)
    written = copy.deepcopy(graph).half() if exporting.precision == "float16" else graph
    progress("Tracing the graph")
    program = _trace(written)
    progress(f"Converting it to {exporting.format}, {exporting.precision}")
    if exporting.format == "torch":
        data, run = _torch_file(program, description)
    else:
        data, run = _onnx_file(program, written, description, exporting.precision)
    progress("Comparing logits with torch's")
    found, largest = differences(model, run)
    bound = TOLERANCES.get(exporting.precision, float("inf")) * max(1.0, largest)
    if not max(found.values()) <= bound:
        raise SpitError(f"expected logits within {bound:g} of torch's, got a difference of {max(found.values()):g}; "
                        "nothing was written")
    write_whole(path, data)
    return Exported(path, len(data), found, _warning(path, about) if exporting.format == "onnx" else "")


def describe(model: SpitModel, exporting: Exporting) -> dict[str, Any]:
    """What a caller has to know about a model to run its graph, as JSON has it."""
    config, tokenizer, extractor = model.config, model.tokenizer, model.extractor
    return {
        "format": FORMAT,
        "version": __version__,
        "input": "tokens",
        "precision": exporting.precision,
        "digest": digest(model),
        "size": config.eval_size or SIZE,
        "crop": config.eval_crop,
        "num_classes": config.num_classes,
        "class_names": list(config.class_names),
        "tokenizer": config.tokenizer,
        "tokenizer_options": tokenizer.config() if isinstance(tokenizer, Tokenizer) else {},
        "extractor": config.extractor,
        "features": extractor.to_dict() if isinstance(extractor, FeatureExtractor) else {},
    }


def _warning(path: Path, about: Mapping[str, Any]) -> str:
    """Why spit.runtime, which has spit's own tokenizers and features alone, would refuse the file."""
    try:
        make_parts(about)
    except ValueError as error:
        return (f"spit.runtime cannot run {path} on images: {error}, or give onnxruntime the features of your tokens")
    return ""


def _trace(graph: TokenGraph) -> ExportedProgram:
    """The graph with a dynamic number of tokens."""
    example = torch.zeros(7, graph.embedder.projection.in_features)
    with torch.no_grad():
        return torch.export.export(graph, (example,), dynamic_shapes=({0: Dim("count", min=1, max=MOST_TOKENS)},))


def _torch_file(program: ExportedProgram, description: str) -> tuple[bytes, Run]:
    buffer = io.BytesIO()
    torch.export.save(program, buffer, extra_files={KEY: description})
    data = buffer.getvalue()
    module: Any = torch.export.load(io.BytesIO(data)).module()
    return data, lambda given: module(given)[0]


def _onnx_file(program: ExportedProgram, graph: TokenGraph, description: str, precision: str) -> tuple[bytes, Run]:
    import onnx
    import onnxruntime

    with _quiet():
        made = torch.onnx.export(program, (), input_names=["features"], output_names=list(graph.outputs),
                                 opset_version=OPSET, dynamo=True)
    if made is None:
        raise RuntimeError("torch.onnx.export returned no program")
    proto = made.model_proto
    if precision == "int8":
        proto = _quantize(proto)
    for node in proto.graph.node:  # the exporter's stack traces, with the paths of this machine
        del node.metadata_props[:]
        node.ClearField("doc_string")
    onnx.helper.set_model_props(proto, {KEY: description})
    data = proto.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return data, lambda given: torch.from_numpy(session.run(["logits"], {"features": given.numpy()})[0])


def _quantize(proto: Any) -> Any:
    """Weights of matrix products in 8 bits, a scale for each column.

    γ stays in float32: its input has colours up to 2.6 beside histograms of a thousandth, which one scale would lose
    (of 40 images, 20 kept their class with γ in 8 bits, 38 without).
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with TemporaryDirectory() as folder, _quiet():
        path = Path(folder) / "int8.onnx"
        del proto.graph.value_info[:]  # shapes of matrices that the quantiser transposes
        constants = {constant.name for constant in proto.graph.initializer}
        embedder = next(node.name for node in proto.graph.node if node.op_type in ("MatMul", "Gemm")
                        and node.input[1] in constants)  # the first product with weights
        quantize_dynamic(proto, path, weight_type=QuantType.QInt8, per_channel=True, nodes_to_exclude=[embedder])
        return onnx.load(path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's progress on stdout and its warnings about packages that it looks for."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
