"""A Kubernetes API server in memory, for demos and tests.

The sandbox serves plain HTTP on loopback without authentication and stores nothing on disk. It contains no scheduling
code, so that tests do not compare code with itself. Names are imported at first use. Only `app` and the packages above
it import this package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from policysched.sandbox.api.server import Faults
    from policysched.sandbox.sandbox import Sandbox, load_rank, sandbox_nodes

__all__ = ["Faults", "Sandbox", "load_rank", "sandbox_nodes"]
_PLACES: Final = {
    "Faults": "policysched.sandbox.api.server",
    "Sandbox": "policysched.sandbox.sandbox",
    "load_rank": "policysched.sandbox.sandbox",
    "sandbox_nodes": "policysched.sandbox.sandbox",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
