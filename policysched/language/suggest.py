"""Which known name a wrong one was meant to be.

Knows nothing of the language: it gets the names. Long texts are nobody's misspelling of a short name and are not
compared, which keeps any text cheap.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 40


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the nearest known name, or nothing."""
    if len(name) > _LONGEST:
        return ""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.65)
    return f"did you mean `{close[0]}`?" if close else ""


def shown(text: str) -> str:
    """Return a text as messages quote it."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
