"""Reference pages that are generated from the code.

Each module of this package has `PAGE`, the file, and `page()`, its text. `python -m tools.reference` writes all pages;
`tests/pages/test_pages.py` fails when a page differs from its text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tools.reference import (
    commands,
    configuration,
    errors,
    fields,
    functions,
    kubernetes_changes,
    kubernetes_versions,
    metrics,
)

_MODULES: Final = (commands, configuration, errors, fields, functions, kubernetes_changes, kubernetes_versions, metrics)
GENERATED: Final[dict[Path, Callable[[], str]]] = {module.PAGE: module.page for module in _MODULES}
"""Functions that return the text of each generated page, by the page's file."""
