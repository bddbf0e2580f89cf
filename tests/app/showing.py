"""What a table looks like, as lines of single-spaced words."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType


def lines(part: RenderableType, width: int = 200) -> list[str]:
    out = Console(width=width, file=io.StringIO(), record=True, markup=False)
    out.print(part)
    return [" ".join(line.split()) for line in out.export_text().splitlines() if line.strip()]
