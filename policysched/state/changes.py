"""What happened to the cluster, as small values that drive the queue and the caches.

The actions are kube-scheduler's event types, because plugins say in its terms which of them can help a pod they
rejected.

Source: k8s.io/kube-scheduler/framework/types.go (ActionType, EventResource).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import Any

from policysched.model.kinds import Resource
from policysched.model.policy import MetricKey


class Action(IntFlag):
    """What was done to an object, an update in its parts."""

    NONE = 0
    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    """The unschedulable flag counts as a taint."""
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_NODE_IMAGES = 256
    UPDATE_POD_LABEL = 512
    UPDATE_POD_SCALE_DOWN = 1024
    UPDATE_POD_TOLERATION = 2048
    UPDATE_POD_GATES_ELIMINATED = 4096
    UPDATE_OTHER = 8192
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_NODE_IMAGES
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_GATES_ELIMINATED
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


@dataclass(frozen=True, slots=True)
class Change:
    """One change: `old` is absent for an addition, `new` for a removal."""

    resource: Resource
    action: Action
    old: Any = None
    new: Any = None
    row: int = -1
    """The node's row, or the row of the node that the pod is on; -1 where there is none."""
    metric: MetricKey | None = None
    """The metric whose values changed."""

    @property
    def nothing(self) -> bool:
        """True where nothing that anyone reads has changed."""
        return self.action is Action.NONE or self.resource is Resource.OTHER


def change_of(resource: Resource, old: Any, new: Any) -> Change:
    """Name the change of an object of which nobody looks at parts; either may be None."""
    if new is None:
        return Change(resource, Action.NONE if old is None else Action.DELETE, old)
    return Change(resource, Action.ADD if old is None else Action.NONE if old == new else Action.UPDATE_OTHER, old, new)
