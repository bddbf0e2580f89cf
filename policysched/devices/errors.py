"""Why claims cannot be allocated, where it is more than that there are not enough devices.

Source: k8s.io/dynamic-resource-allocation v0.36 structured/internal/types.go (ErrFailedAllocationOnNode).
"""

from __future__ import annotations


class AllocationError(Exception):
    """The claims cannot be allocated anywhere as they are: a status Error of the whole pod, with this text."""


class NodeAllocationError(AllocationError):
    """Invalid resource pools: the node is not suitable, with this text; other nodes may be."""


class AllocationTimeoutError(AllocationError):
    """The search took too many steps: what kube-scheduler says when its filter's time is over."""
