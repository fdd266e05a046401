"""Docstrings as the reference shows them (an extension of griffe, which mkdocstrings reads the sources with).

The text is that of the imported object, since the options of a dataclass join its docstring when it is defined. The
roles of Sphinx become code, and the section ``Example:`` becomes ``Examples:``, which griffe knows.
"""

import inspect
import re
from importlib import import_module
from typing import Any

from griffe import Docstring, Extension, Object


class Docstrings(Extension):
    """Rewrite every docstring of spit before it is parsed."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Called for every function, class and attribute that was found in the sources."""
        if obj.docstring is None or obj.is_module:
            return
        text = (inspect.getdoc(runtime(obj)) if obj.is_class else None) or obj.docstring.value
        text = re.sub(r":[a-z]+:`+~?([^`]+)`+", r"`\1`", text)
        text = re.sub(r"(?:\.\. )?(\[\d\])_?(?= |\.)", r"\1", text)
        text = re.sub(r"^( *)Example:$", r"\1Examples:", text, flags=re.MULTILINE)
        obj.docstring = Docstring(text, parent=obj, lineno=obj.docstring.lineno)


def runtime(obj: Object) -> Any:
    """The class itself; None for one inside a function."""
    found: Any = import_module(obj.module.path)
    for name in obj.path.removeprefix(obj.module.path).strip(".").split("."):
        found = getattr(found, name, None)
    return found
