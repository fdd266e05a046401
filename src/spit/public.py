"""The public names of spit, which ``import spit`` loads when one of them is first asked for."""

from spit.answers.explain import explain
from spit.answers.segment import segment
from spit.arrays import hierarchy, superpixels
from spit.config import ModelConfig
from spit.data.classes import Guess
from spit.data.images import load_image
from spit.errors import ImageError, MissingExtra, SpitError, WeightsError
from spit.features import FeatureExtractor
from spit.interop.published.loader import from_published
from spit.interop.timm import from_timm
from spit.labels.adjacency import Adjacency, adjacency
from spit.labels.drawing import draw
from spit.labels.polygons import Polygons, polygons
from spit.labels.regions import Regions, regions
from spit.model import Output, SpitModel
from spit.partition import Hierarchy, Partition
from spit.parts import register_backbone, register_features, register_tokenizer
from spit.pooling import pool
from spit.predictor import Prediction, Predictor, load
from spit.registry import create_model, list_models, load_model
from spit.seams import register_seam, wrap
from spit.segmentation.correspondence import Correspondence, correspond
from spit.segmentation.saliency import Segmentation
from spit.tiles.run import superpixels_tiled
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, Tokenizer, VoronoiTokenizer, create_tokenizer
from spit.tokens import Tokens
from spit.video import superpixels_video
from spit.weights import save as save_model

__all__ = [
    "Adjacency",
    "Correspondence",
    "FeatureExtractor",
    "Guess",
    "Hierarchy",
    "ImageError",
    "MissingExtra",
    "ModelConfig",
    "Output",
    "Partition",
    "PatchTokenizer",
    "Polygons",
    "Prediction",
    "Predictor",
    "Regions",
    "Segmentation",
    "SpitError",
    "SpitModel",
    "SuperpixelTokenizer",
    "Tokenizer",
    "Tokens",
    "VoronoiTokenizer",
    "WeightsError",
    "adjacency",
    "correspond",
    "create_model",
    "create_tokenizer",
    "draw",
    "explain",
    "from_published",
    "from_timm",
    "hierarchy",
    "list_models",
    "load",
    "load_image",
    "load_model",
    "polygons",
    "pool",
    "regions",
    "register_backbone",
    "register_features",
    "register_seam",
    "register_tokenizer",
    "save_model",
    "segment",
    "superpixels",
    "superpixels_tiled",
    "superpixels_video",
    "wrap",
]
