"""Which pixels a prediction rests on (§3.2, App. D): token values painted to pixels, never interpolated."""

from spit.lazy import lazily

__getattr__ = lazily(__name__, {
    "adapters": ["explain_func"],
    "fitting": ["fit_prototypes"],
    "flow": ["Flow", "Rollout"],
    "lime": ["Lime"],
    "methods": ["METHODS", "Method", "RandomControl", "Target", "create_method"],
    "occlusion": ["occlude", "rank_pixels"],
    "options": ["MethodOptions"],
    "prototypes": ["PrototypeProjection", "Prototypes", "load_prototypes"],
    "relevance": ["Relevance"],
    "token_rise": ["TokenRise"],
})
