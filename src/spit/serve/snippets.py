"""Python that reproduces a view of the explorer."""

from collections.abc import Sequence

import numpy as np

from spit.registry import ARCHITECTURES
from spit.serve.pictures import Picture
from spit.serve.schemas import SnippetFields

OPTIONS = ("max_tokens", "compactness", "refine")  # of superpixel tokens
IMPORTS = {
    "at_most(": "from spit.predictor import at_most",
    "at_size(": "from spit.predictor import at_size",
    "create_method(": "from spit.attribution import create_method",
    "hierarchy_of(": "from spit.segmentation.saliency import hierarchy_of",
    " normalize(": "from torch.nn.functional import normalize",
}
CLASSIFY = """for name, probability in prediction.top(10)[0]:
    print(f"{probability:6.1%} {name}")
"""
TOKENS = """labels = prediction.partition.labels[0]  # (H, W): the token of each pixel
tokens = prediction.tokens.values  # (N, D)
out = predictor.model(prediction.images, record=("attention",))
attention = out.attention[{layer}][0].detach()  # (heads, N + 1, N + 1), the class token first
print(labels.max() + 1, tokens.shape)
"""
CORRESPOND = """
other = {predictor}({image}, crop=False)
cosines = tokens @ normalize(other.tokens.values, dim=1).T  # (tokens of the first picture, tokens of the other)
best, match = cosines.max(1)
print({name!r}, [(int(token), round(float(cosine), 2)) for token, cosine in zip(match, best)])
"""
COMPARE = """
other = {predictor}(image, crop=False)
print({name!r}, int(other.partition.counts[0]), "tokens,", other.top(1)[0][0].name)
"""


def snippet(pictures: Sequence[Picture], asked: SnippetFields) -> str:
    """A script that prints what a view shows.

    Args:
        pictures: the one that the page shows, and in *correspond* the others beside it.
        asked: the view and its settings.
    """
    picture = pictures[0]
    views = {"classify": CLASSIFY, "explain": _explain(asked), "segment": _segment(picture, asked),
             "tokens": TOKENS.format(layer=asked.layer), "correspond": _correspond(pictures, asked),
             "compare": _compare(picture, asked)}
    body = f"""
predictor = {_predictor(picture)}
image = {_image(picture, asked.name)}  # your file, or the PNG of Download, Picture
prediction = predictor(image, crop=False)
{views[asked.view]}"""
    imports = sorted(line for word, line in IMPORTS.items() if word in body)
    name = picture.predictor.name
    own = [] if name.partition(".")[0] in ARCHITECTURES else [f"# {name}: write the path of this model"]
    return "\n".join(["import spit", *imports, *own, body])


def _predictor(picture: Picture, name: str | None = None) -> str:
    """The picture's model, or another one, with the picture's tokens."""
    loaded, given = f"spit.load({name or picture.predictor.name!r})", picture.settings
    if given.keys().isdisjoint(("tokenizer", *OPTIONS)):
        return loaded
    return loaded + _with_tokenizer(picture, given.get("tokenizer", picture.predictor.model.config.tokenizer))


def _with_tokenizer(picture: Picture, kind: str) -> str:
    given = picture.settings if kind == "superpixel" else {}
    options = "".join(f", {name}={given[name]!r}" for name in OPTIONS if name in given)
    return f".with_tokenizer({kind!r}{options})"


def _image(picture: Picture, name: str) -> str:
    side, loaded = picture.settings["max_side"], f"spit.load_image({name!r})"
    return loaded if side is None else f"at_most({loaded}, {side})"


def _explain(asked: SnippetFields) -> str:
    method = repr(asked.method or "relevance")
    if asked.samples is not None:
        method = f"create_method({method}, samples={asked.samples})"
    return f"""values = prediction.explain({method}, target={asked.target or None!r})[0]  # (H, W)
print(values.shape, float(values.abs().max()))
"""


def _segment(picture: Picture, asked: SnippetFields) -> str:
    options = {"method": asked.method or None, "tau": asked.tau, "clean": None if asked.clean else False}
    given = ", ".join(f"{name}={value!r}" for name, value in options.items() if value is not None)
    edits = [part for edit in asked.edits.split(",") if edit
             for part in _tokens_of(picture, *map(int, edit.split(":")))]
    changed = f"""mask = at_size(mask, prediction.images[0].shape[1:])  # as the model sees the picture
levels = hierarchy_of(predictor.model.tokenizer, prediction.images[0], prediction.partition)
for level, region, inside in {edits}:  # changed by hand
    mask[levels[level].labels[0] == region] = inside
""" if edits else ""
    return f"""mask = prediction.segment({given}).mask[0]  # (H, W) bool
{changed}print(f"{{mask.float().mean():.1%}} of the picture is foreground")
"""


def _tokens_of(picture: Picture, level: int, region: int, inside: int) -> list[tuple[int, int, bool]]:
    """A change by hand at a level of the hierarchy; above the tokens, a change of each token of the region."""
    regions = np.array([region])
    parents = np.split(np.frombuffer(picture.parents, "<u2"), np.cumsum(picture.counts[picture.label_level : -1]))
    for upper in range(level, picture.token_level, -1):
        regions = np.flatnonzero(np.isin(parents[upper - 1 - picture.label_level], regions))
    return [(min(level, picture.token_level), int(one), bool(inside)) for one in regions]


def _correspond(pictures: Sequence[Picture], asked: SnippetFields) -> str:
    own = _predictor(pictures[0])
    names = [*asked.names, *(f"other_{index}.png" for index in range(len(pictures)))]
    return "tokens = normalize(prediction.tokens.values, dim=1)\n" + "".join(CORRESPOND.format(
        predictor="predictor" if _predictor(picture) == own else _predictor(picture), image=_image(picture, name),
        name=name) for picture, name in zip(pictures[1:], names, strict=False))


def _compare(picture: Picture, asked: SnippetFields) -> str:
    if asked.models:
        views = {name: _predictor(picture, name) for name in asked.models.split(",")}
    else:
        kinds = (asked.tokenizers or "patch,voronoi,superpixel").split(",")
        views = {kind: f"predictor{_with_tokenizer(picture, kind)}" for kind in kinds}
    return "".join(COMPARE.format(predictor=made, name=name) for name, made in views.items())
