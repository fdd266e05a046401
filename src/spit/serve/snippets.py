"""Python that reproduces a view of the explorer."""

from spit.serve.pictures import Picture
from spit.serve.schemas import SnippetFields

HEAD = """import spit

{before}predictor = spit.load({model!r}){tokens}
image = spit.load_image("image.png")  # the picture as the page shows it: Download, picture
prediction = predictor(image, crop=False{size})
"""


def snippet(picture: Picture, asked: SnippetFields) -> str:
    """A script that prints what a view shows."""
    size = "" if picture.width * picture.height <= 2**18 else f", size={min(picture.width, picture.height)}"
    head = HEAD.format(model=_source(picture), tokens=_tokens(picture), size=size, before="")
    return head + {"classify": _classify, "explain": _explain, "segment": _segment, "tokens": _show_tokens,
                   "correspond": _correspond, "compare": _compare}[asked.view](picture, asked)


def _source(picture: Picture) -> str:
    return picture.predictor.name


def _tokens(picture: Picture) -> str:
    given = picture.settings
    names = [name for name in ("max_tokens", "compactness", "refine") if name in given]
    if "tokenizer" not in given and not names:
        return ""
    kind = given.get("tokenizer", picture.predictor.model.config.tokenizer)
    options = "".join(f", {name}={given[name]!r}" for name in names)
    return f".with_tokenizer({kind!r}{options})"


def _classify(picture: Picture, asked: SnippetFields) -> str:
    return """for name, probability in prediction.top(10)[0]:
    print(f"{probability:6.1%} {name}")
"""


def _explain(picture: Picture, asked: SnippetFields) -> str:
    target = asked.target or None
    shown = target if target is not None and target.isdecimal() else repr(target)
    return f"""values = prediction.explain({asked.method or 'relevance'!r}, target={shown})[0]  # (H, W)
print(values.shape, float(values.max()))
"""


def _segment(picture: Picture, asked: SnippetFields) -> str:
    options = [*([f"method={asked.method!r}"] if asked.method in ("head", "cut", "both") else []),
               *([f"tau={asked.tau!r}"] if asked.tau is not None else []), *([] if asked.clean else ["clean=False"])]
    return f"""found = prediction.segment({', '.join(options)})
mask = found.mask[0]  # (H, W) bool
print(f"{{mask.float().mean():.1%}} of the picture is foreground")
"""


def _show_tokens(picture: Picture, asked: SnippetFields) -> str:
    return f"""labels = prediction.partition.labels[0]  # (H, W): the token of each pixel
tokens = prediction.tokens.values  # (N, D)
out = predictor.model(image[None], record=("attention",))
attention = out.attention[{asked.layer}]  # (heads, N + 1, N + 1) of the one image, the class token first
print(labels.max() + 1, tokens.shape)
"""


def _correspond(picture: Picture, asked: SnippetFields) -> str:
    return """other = predictor(spit.load_image("other.png"), crop=False)
found = spit.correspond(prediction, other)
print(found.source.shape, found.targets[0].shape)  # pseudo-colours, (H, W, 3)
"""


def _compare(picture: Picture, asked: SnippetFields) -> str:
    return """for tokenizer in ("patch", "voronoi", "superpixel"):
    other = prediction.with_tokenizer(tokenizer)
    print(tokenizer, int(other.partition.counts[0]), "tokens:", other.top(1)[0][0])
"""
