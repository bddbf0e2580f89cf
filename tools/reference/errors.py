"""The reference of errors and warnings: the texts of `policysched explain`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from policysched.app.checking.explain import Explained, explain_all, shortened

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
WIDTH: Final = 120
HEAD: Final = """---
description: Every error and warning of a policy, with an example and its correction.
---

# Errors and warnings

Look up a code that `policysched check`, the status of a policy or the admission webhook reports. `policysched explain
E0301` prints the same text. An error keeps a policy from being used; a warning (`W…`) does not. Each example is a part
of a policy's `spec`.
"""


def page() -> str:
    """Return the text of the reference page about errors and warnings."""
    codes = explain_all()
    rows = [f"| [{one.code}](#{one.code.lower()}) | {_cell(one.title)} |" for one in codes]
    parts = [HEAD, "\n".join(["| code | about |", "|---|---|", *rows]) + "\n", *map(_section, codes)]
    return "\n".join(parts)


def _section(one: Explained) -> str:
    return "\n".join([f"## {one.code}", "", f"**{one.title}**", "", *_paragraphs(one)])


def _paragraphs(one: Explained) -> Iterator[str]:
    for prose in (one.meaning, one.reason):
        yield textwrap.fill(prose, WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"
    yield _block("yaml", shortened(one.example))
    if one.nodes:
        yield "On these nodes:\n"
        yield _block("yaml", one.nodes)
    for said in one.says():
        yield _block("text", f"{said}\n")
    yield "Write instead:\n"
    yield _block("yaml", one.fix)


def _block(kind: str, text: str) -> str:
    return f"```{kind}\n{text}```\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
