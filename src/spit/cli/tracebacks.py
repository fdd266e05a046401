"""Whose error it is: an exception of a user's own tokenizer becomes one line that names the tokenizer."""

import os
import sys
from traceback import walk_tb

SWITCH = "SPIT_TRACEBACK"  # 1 in the environment shows the traceback in place of a line
CALLS = ("__call__", "hierarchy")  # of a tokenizer; an option that is refused while it is made has its own line


def wanted() -> bool:
    """Whether the user asked for tracebacks."""
    return os.environ.get(SWITCH) == "1"


def reason(error: BaseException) -> str:
    """An expected error in one line."""
    return own_tokenizer_line(error) or " ".join(str(error).split())


def own_tokenizer_line(error: BaseException) -> str | None:
    """A line about an error in the call of a tokenizer that is not one of spit's; None for any other error."""
    if "spit.tokenizers" not in sys.modules:  # none was called; importing it imports torch
        return None
    from spit.tokenizers import TOKENIZERS, Tokenizer

    for frame, _ in walk_tb(error.__traceback__):
        owner = frame.f_locals.get("self") if frame.f_code.co_name in CALLS else None
        if isinstance(owner, Tokenizer) and not type(owner).__module__.startswith("spit."):
            name = TOKENIZERS.name_of(owner) or type(owner).__name__
            said = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
            return f"your tokenizer {name!r} raised {said}; {SWITCH}=1 before the command shows the traceback"
    return None
