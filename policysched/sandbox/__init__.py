"""An in-memory Kubernetes API server for trying policies without a cluster, and for tests.

It serves one user on one machine: plain HTTP on loopback, no authentication, nothing is kept when it stops.
It knows no scheduling, so that tests of the scheduler cannot agree with it by sharing code.
"""

from policysched.sandbox.faults import Faults
from policysched.sandbox.nodes import sandbox_nodes
from policysched.sandbox.sandbox import Sandbox

__all__ = ["Faults", "Sandbox", "sandbox_nodes"]
