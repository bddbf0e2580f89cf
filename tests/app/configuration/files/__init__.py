"""Configurations as somebody would write them, each with what is to come of it.

`good` ones end with lines `#= PATH VALUE`: what the completed form has there, as JSON, null for what is not there.
`bad` ones end with a line for each fault, `#! LINE:COLUMN: FIELD: MESSAGE`.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def files(kind: str) -> list[Path]:
    """List the files of a kind, by name."""
    return sorted((FOLDER / kind).glob("*.yaml"))


def expected(path: Path) -> list[str]:
    """Return what a file says that is to come of it."""
    lines = path.read_text("utf-8").splitlines()
    return [line[3:] for line in lines if line.startswith(("#= ", "#! "))]
