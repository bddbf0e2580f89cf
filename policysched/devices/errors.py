"""Errors of a device allocation, other than "cannot allocate all claims".

Source: k8s.io/dynamic-resource-allocation v0.36 structured/internal/types.go (ErrFailedAllocationOnNode).
"""

from __future__ import annotations


class AllocationError(Exception):
    """Raised if the claims can be allocated on no node; the pod gets the status Error with this message."""


class NodeAllocationError(AllocationError):
    """Raised if a node has invalid resource pools; the node is rejected with this message."""


class AllocationTimeoutError(AllocationError):
    """Raised if the search exceeds its step limit; has the message of kube-scheduler's filter timeout."""
