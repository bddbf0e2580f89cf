"""Writes every generated reference page: `python -m tools.reference`."""

from __future__ import annotations

from tools.reference import GENERATED

for path, text in GENERATED.items():
    path.write_text(text(), "utf-8")
