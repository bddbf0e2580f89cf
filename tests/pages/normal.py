"""What of an output is never the same twice, and is therefore not compared: ages, times, drawn names, ports, widths.

Everything else is. A page whose listing is the same in this sense keeps the text that it has.
"""

from __future__ import annotations

import re
from typing import Final

_RULES: Final = (
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?", "<time>"),
    (r"(?<![\w.])(?:\d+d)?(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?m?s(?: ago)?\b", "<age>"),
    (r"\b10\.0\.0\.\d+\b", "<ip>"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
    # what the API server puts behind a generateName
    (r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}(?![\w-])", "<drawn>"),
    (r"[ \t]+", " "),
    (r"[─-]{4,}", "────"),
)
_PATTERNS: Final = tuple((re.compile(pattern), text) for pattern, text in _RULES)


def normal(output: str) -> list[str]:
    """Give the lines of an output without what is never the same twice.

    Lines about objects whose names are drawn come in the order of these names, so they are sorted.
    """
    for pattern, text in _PATTERNS:
        output = pattern.sub(text, output)
    lines = [line.strip() for line in output.strip().splitlines()]
    drawn = iter(sorted(line for line in lines if "<drawn>" in line))
    return [next(drawn) if "<drawn>" in line else line for line in lines]
