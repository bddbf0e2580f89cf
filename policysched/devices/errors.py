"""Errors of a device allocation, other than "cannot allocate all claims".

Source: k8s.io/dynamic-resource-allocation v0.36 structured/internal/types.go (ErrFailedAllocationOnNode).
"""

from __future__ import annotations


class AllocationError(Exception):
    """The claims cannot be allocated on any node: the pod gets the status Error with this message."""


class NodeAllocationError(AllocationError):
    """The node has invalid resource pools: the node is rejected with this message."""


class AllocationTimeoutError(AllocationError):
    """The search exceeded its step limit; the message is the message of kube-scheduler's filter timeout."""
