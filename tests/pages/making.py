"""Which pages there are, and how each is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.pages.listings import refreshed
from tools import cookbook
from tools.documents.markdown import DOCUMENTS
from tools.reference import GENERATED

WHOLE: Final[dict[Path, Callable[[], str]]] = {
    **GENERATED,
    cookbook.PAGE: cookbook.page,
}
"""Pages that are made as a whole: their blocks are what their makers say, and are tested with these."""
PAGES: Final = tuple(path for path in DOCUMENTS if path.name != "CHANGELOG.md")


def made(path: Path, *, measure: bool = False) -> str:
    """Give a page as it should be."""
    if path in WHOLE:
        return WHOLE[path]() if not measure else path.read_text("utf-8")
    return refreshed(path.read_text("utf-8"), measure=measure)
