"""Backbones by name: ``timm:NAME`` and ``hf:ID``, with their weights or, for a saved model, without."""

import json
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

from spit.errors import MissingExtra, WeightsError
from spit.seams.names import NAMES
from spit.seams.wrap import wrap
from spit.weights import Checkpoint

DECLARED: list[torch.library.Library] = []  # kept, or torch forgets what they declare
LIBRARIES = {"timm": "timm", "hf": "transformers"}  # prefix of a name: package and extra


def read_wrapped(source: str) -> Checkpoint:
    """The backbone of a name, with its trained weights, wrapped by the defaults of :func:`spit.wrap`.

    Args:
        source: ``timm:vit_small_patch14_reg4_dinov2``, with a tag if there are several; or
            ``hf:facebook/dinov2-small``, an id of the Hugging Face hub or a folder that ``save_pretrained`` wrote.
    """
    prefix, _, name = source.partition(":")
    library = LIBRARIES[prefix]
    colors: Mapping[str, Any] = {}
    try:
        if prefix == "timm":
            module: nn.Module = import_library("timm").create_model(name, pretrained=True)
        else:
            module, colors = pretrained_module(name)
    except ImportError as error:
        raise MissingExtra(library, library, f"loading {source}") from error
    except Exception as error:  # of the library, the hub or the network, by its version
        line = str(error).strip().partition("\n")[0]
        raise WeightsError(f"{source}: {library} has no weights of {name!r} here ({line}); check the name, and the "
                           "network or its cache") from error
    model = wrap(module.eval(), **colors)
    return Checkpoint(source, model.config, model.state_dict())


def import_library(name: str) -> Any:
    """timm or transformers, also beside a torchvision that was not built for this torch.

    Both import torchvision if it is there. PyPI's does not load its operators beside a CPU build of torch, and ends in
    an error about an unknown operator. No ViT needs them; once their names are declared, all can be imported.
    """
    if find_spec("torchvision") is not None:
        try:
            import_module("torchvision")
        except RuntimeError:
            DECLARED.append(torch.library.Library("torchvision", "FRAGMENT"))
            for operator in ("nms", "qnms"):
                DECLARED[-1].define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return import_module(name)


def pretrained_module(name: str) -> tuple[nn.Module, dict[str, Any]]:
    """A vision transformer of transformers with its weights, and the colours of its image processor.

    Of a model of images and text, the image tower.
    """
    transformers = import_library("transformers")
    from transformers.image_processing_base import ImageProcessingMixin

    config = transformers.AutoConfig.from_pretrained(name)
    kinds = config.model_type, f"{config.model_type}_vision_model"
    known = [cls for cls in NAMES if getattr(transformers, cls).config_class.model_type in kinds]
    chosen = [cls for cls in config.architectures or () if cls in known] or known
    if not chosen:
        raise ValueError(f"spit.wrap has no seam for a model of type {config.model_type}")
    module: nn.Module = getattr(transformers, chosen[0]).from_pretrained(name)
    try:
        described, _ = ImageProcessingMixin.get_image_processor_dict(name)
    except OSError:  # there is none
        return module, {}
    return module, {key: described[f"image_{key}"] for key in ("mean", "std") if described.get(f"image_{key}")}


def make_module(source: object, options: Mapping[str, Any]) -> nn.Module:
    """A backbone with new weights, from what a saved config says."""
    prefix, _, name = str(source).partition(":")
    if prefix not in LIBRARIES:
        raise ValueError(f"expected the source of a wrapped backbone as timm:NAME or hf:CLASS, got {source!r}")
    try:
        if prefix == "timm":
            module: nn.Module = import_library("timm").create_model(name, pretrained=False, **options)
        else:
            from spit.seams.transformers import module_of

            module = module_of(name, options)
    except ImportError as error:
        raise MissingExtra(LIBRARIES[prefix], LIBRARIES[prefix], f"loading {source}") from error
    except RuntimeError as error:  # timm's, of an unknown name
        raise ValueError(f"{source}: {str(error).partition(chr(10))[0]}") from error
    return module.eval()


def check_source(module: nn.Module, options: Mapping[str, Any]) -> None:
    """Raise WeightsError if a saved config would not make this module again."""
    way_out = "save its own state dict, and wrap it again after loading"
    if "source" not in options:
        raise WeightsError(f"a {type(module).__name__} cannot be made again from a name, so its model is not saved; "
                           f"{way_out}")
    try:
        kept = json.loads(json.dumps(dict(options["options"])))
        with torch.device("meta"), torch.random.fork_rng(devices=()):
            again = make_module(options["source"], kept)
    except Exception as error:
        raise WeightsError(f"{options['source']} does not make this {type(module).__name__} again ({error}); {way_out}"
                           ) from error
    shapes = [{name: tensor.shape for name, tensor in one.state_dict().items()} for one in (module, again)]
    if shapes[0] != shapes[1] or str(module) != str(again):
        raise WeightsError(f"{options['source']} makes another {type(again).__name__} than this one, which was changed "
                           f"after it was made; {way_out}")
