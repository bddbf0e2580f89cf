"""An in-memory Kubernetes API server for trying policies without a cluster, and for tests.

It serves one user on one machine: plain HTTP on loopback, no authentication, nothing is kept when it stops.
It knows no scheduling, so that tests of the scheduler cannot agree with it by sharing code. What is named here is
imported at first use, because the schemas alone, which checking needs, ask for no server.
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
