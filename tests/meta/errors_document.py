"""Makes docs/reference/errors.md of the explanations: what `policysched explain` prints, as a document."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from policysched.app.checking.explain import Explained, explain_all, shortened
from tests.meta.markdown import ROOT

DOCUMENT: Path = ROOT / "docs" / "reference" / "errors.md"
VARIABLE = "UPDATE_DOCUMENTS"
WIDTH = 120
HEAD = f"""# Errors and warnings

Everything that `policysched check` and the status of a policy may say, by its code; `policysched explain E0301` prints
the same. An error keeps a policy from being used, a warning (`W…`) does not. Examples are parts of a policy's `spec`;
each gets the code that it stands under and no other, and what is written instead gets none.

This document is made of `policysched/language/messages/messages.toml`; `{VARIABLE}=1 pytest
tests/meta/test_errors.py` writes it anew.
"""


def document() -> str:
    """The whole document."""
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
