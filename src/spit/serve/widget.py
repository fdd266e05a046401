"""``prediction.show()``: the explorer's tokens in a notebook, as an anywidget made of the page's own modules."""

import json
import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from PIL import Image

from spit.drawing import draw_overlay, encode_png
from spit.images import quantize
from spit.predictor import Prediction
from spit.serve.pictures import Picture

PAGE = Path(__file__).parent / "page"
ENTRY = PAGE / "js" / "widget.js"
IMPORT = re.compile(r'^import (?:\* as (\w+)|\{([^}]*)\}) from "([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?:default (\{.*\});|((?:async )?(?:function|class|const|let)) (\w+)|\{([^}]*)\};)",
                    re.MULTILINE)


def show(prediction: Prediction, index: int = 0) -> Any:
    """A widget for one image of a prediction, or a picture of its tokens if anywidget is not installed."""
    if not 0 <= index < len(prediction):
        raise IndexError(f"expected an image from 0 to {len(prediction) - 1}, got {index}")
    return _widget_class()(prediction, index) if find_spec("anywidget") else static_picture(prediction, index)


def static_picture(prediction: Prediction, index: int = 0) -> Image.Image:
    """The image with the outlines of its tokens; a notebook shows it."""
    return draw_overlay(prediction.images[index].cpu(), prediction.partition[index].to("cpu"))


class _Seen(Picture):
    """A picture of an existing prediction."""

    def __init__(self, prediction: Prediction, index: int) -> None:
        one = prediction if len(prediction) == 1 else Prediction(prediction.predictor, [prediction.images[index]])
        self.predictor, self.settings, self._prediction = prediction.predictor, {}, one
        self.image = quantize(one.images[0][None].cpu())[0].expand(3, -1, -1)
        self.height, self.width = self.image.shape[1:]
        self._levels()


@cache
def _widget_class() -> Any:
    """The class of the widget; made when it is asked for, since anywidget is an extra."""
    anywidget, traitlets = import_module("anywidget"), import_module("traitlets")

    def sent(kind: Any, *default: Any) -> Any:
        return kind(*default).tag(sync=True)

    class TokenWidget(anywidget.AnyWidget):  # type: ignore[misc, name-defined]
        """One image: everything but attention travels once; a layer's attention when it is asked for."""

        _esm = bundle(ENTRY)
        _css = widget_css()
        about = sent(traitlets.Unicode, "{}")
        image, labels, parents, tokens, regions, attention = (sent(traitlets.Bytes) for _ in range(6))
        layer = sent(traitlets.Int, -1)
        attention_layer = sent(traitlets.Int, -1)

        def __init__(self, prediction: Prediction, index: int) -> None:
            picture = _Seen(prediction, index)
            config = prediction.predictor.model.config
            self.picture = picture
            super().__init__(
                about=json.dumps({
                    "id": "notebook", "levels": [{"regions": count} for count in picture.counts],
                    "token_level": picture.token_level, "label_level": picture.label_level, "layers": config.depth,
                    "heads": config.heads, "classes": [], "methods": []}),
                image=picture.image_png, labels=picture.labels_png, parents=picture.parents, tokens=picture.tokens_bin,
                regions=picture.regions_bin)
            self.observe(self._send_attention, "layer")

        def _send_attention(self, change: Any) -> None:
            if 0 <= change["new"] < self.picture.predictor.model.config.depth:
                self.attention_layer = change["new"]
                self.attention = self.picture.attention(change["new"])

        def _repr_mimebundle_(self, **options: Any) -> Any:
            """The widget, and a picture for viewers that run none, such as a notebook on GitHub."""
            made = super()._repr_mimebundle_(**options)
            data, *rest = made if isinstance(made, tuple) else (made or {},)
            picture = encode_png(static_picture(self.picture.prediction))
            return ({**data, "image/png": picture}, *rest) if rest else {**data, "image/png": picture}

    return TokenWidget


def bundle(entry: Path) -> str:
    """A module and all that it imports as one module, since a notebook has no server to import others from.

    Each becomes a function that returns what the module exports. It knows the forms of ``import`` and ``export`` that
    the page uses.
    """
    made: dict[Path, str] = {}

    def add(path: Path) -> str:
        """The name of a module's exports."""
        name = "$" + "_".join(path.relative_to(PAGE / "js").with_suffix("").parts)
        if path not in made:
            made[path] = ""  # its place is taken by what it imports
            source = path.read_text(encoding="utf-8")
            heads = []
            for whole, names, other in IMPORT.findall(source):
                found = add((path.parent / other).resolve())
                heads.append(f"const {whole} = {found};" if whole else
                             f"const {{{names.replace(' as ', ': ')}}} = {found};")
            body = EXPORT.sub(_plain, IMPORT.sub("", source))
            if re.search(r"^(import|export)\b", body, re.MULTILINE):
                raise ValueError(f"{path.name} has an import or export of a form that is not known")
            exports = [one for match in EXPORT.finditer(source)
                       for one in (match[1] and "default_", match[3], *(match[4] or "").split(",")) if one]
            del made[path]
            head, tail = f"const {name} = (() => {{", f"return {{{', '.join(exports)}}};"
            made[path] = "\n".join([head, *heads, body, tail, "})();\n"])
        return name

    last = add(entry.resolve())
    return "".join(made.values()) + f"export default {last}.default_;\n"


def _plain(match: re.Match[str]) -> str:
    """An export as a plain declaration."""
    if match[1]:
        return f"const default_ = {match[1]};"
    return f"{match[2]} {match[3]}" if match[3] else ""


def widget_css() -> str:
    """The page's style, of the widget alone."""
    style = (PAGE / "style.css").read_text(encoding="utf-8")
    style = re.sub(r"@keyframes[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", style)  # cannot be nested
    style = style.replace(':root[data-theme="dark"]', '&[data-theme="dark"]').replace(":root", "&")
    return f".spit-widget {{\n{style}\n}}\n" + (PAGE / "widget.css").read_text(encoding="utf-8")
