"""Which pixels a prediction rests on (§3.2, App. D): token values painted to pixels, never interpolated."""

from spit.attribution.adapters import ReshapeTransform, explain_func, feature_mask
from spit.attribution.fitting import fit_prototypes
from spit.attribution.flow import Flow, Rollout
from spit.attribution.lime import Lime
from spit.attribution.methods import METHODS, Method, MethodOptions, RandomControl, Target, create_method, explain
from spit.attribution.occlusion import occlude, rank_pixels
from spit.attribution.prototypes import PrototypeProjection, Prototypes, load_prototypes
from spit.attribution.relevance import Relevance
from spit.attribution.token_rise import TokenRise

__all__ = [
    "METHODS", "Flow", "Lime", "Method", "MethodOptions", "PrototypeProjection", "Prototypes", "RandomControl",
    "Relevance", "ReshapeTransform", "Rollout", "Target", "TokenRise", "create_method", "explain", "explain_func",
    "feature_mask", "fit_prototypes", "load_prototypes", "occlude", "rank_pixels",
]
