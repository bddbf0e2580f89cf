"""Pages show what their commands print; `make pages` writes them anew."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

from tests.pages.listings import class_of, uses_kubectl
from tests.pages.making import PAGES, WHOLE, made
from tools.documents.markdown import blocks, shown


def _marked(path: Path) -> object:
    marks = [pytest.mark.kubectl] if uses_kubectl(path.read_text("utf-8")) else []
    return pytest.param(path, id=shown(path), marks=marks)


@pytest.mark.parametrize("path", [_marked(path) for path in PAGES])
def test_a_page_shows_what_its_commands_print(path: Path) -> None:
    before, after = path.read_text("utf-8").splitlines(), made(path).splitlines()
    assert "\n".join(unified_diff(before, after, "shown", "printed now", lineterm="")) == "", (
        "`make pages` writes it anew"
    )


@pytest.mark.parametrize("path", [path for path in PAGES if path not in WHOLE], ids=shown)
def test_every_block_says_what_it_is(path: Path) -> None:
    strange = [f"{shown(path)}:{one.line}: {one.kind}" for one in blocks(path) if class_of(one) is None]
    assert strange == []
