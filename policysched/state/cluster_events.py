"""Cluster events (ActionType, EventResource) and the differences of two object versions as such.

The actions are kube-scheduler's event types, because plugins say in its terms which of them can help a pod they
rejected.

What differs between two versions of an object is said here in the terms of queue events and of row aspects.

Source: k8s.io/kube-scheduler/framework/types.go (ActionType, EventResource); pkg/scheduler/framework/events.go
(nodeSchedulingPropertiesChange, PodSchedulingPropertiesChange).
"""

from __future__ import annotations

from enum import IntFlag
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from policysched.model.kinds import CustomResource, Resource
from policysched.model.objects import Node, Pod, PodCondition, PodStatus
from policysched.model.policy import MetricKey
from policysched.model.requests import Amounts, pod_amounts


class Action(IntFlag):
    """The kind of a change of an object; updates are divided by what changed."""

    NONE = 0
    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    """A change of taints or of `spec.unschedulable`."""
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_NODE_IMAGES = 256
    UPDATE_POD_LABEL = 512
    UPDATE_POD_SCALE_DOWN = 1024
    UPDATE_POD_TOLERATION = 2048
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 4096
    UPDATE_OTHER = 8192
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 16384
    """The pod's status names ResourceClaims generated for the pod."""
    UPDATE_NODE_INFO = 32768
    """A change of a node's addresses or of the versions of its software, which kube-scheduler does not distinguish."""
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
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


_NONE: Final = Action.NONE
_OTHER: Final = Resource.OTHER


class Change(msgspec.Struct, frozen=True):
    """One change of an object; `old` is None for an addition, `new` is None for a deletion."""

    resource: Resource | CustomResource
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
        return self.action is _NONE or self.resource is _OTHER


def change_of(resource: Resource | CustomResource, old: Any, new: Any) -> Change:
    """Name the change of an object of which nobody looks at parts; either may be None."""
    if new is None:
        return Change(resource, Action.NONE if old is None else Action.DELETE, old)
    return Change(resource, Action.ADD if old is None else Action.NONE if old == new else Action.UPDATE_OTHER, old, new)


def departure(pod: Pod, node: str, row: int) -> Change:
    """Return the change of a pod that leaves a node, or gives up one that was only meant for it."""
    if pod.spec.node_name != node:
        pod = replace(pod, spec=replace(pod.spec, node_name=node))
    return Change(Resource.ASSIGNED_POD, Action.DELETE, pod, None, row)


def node_difference(old: Node, new: Node) -> Action:
    """Name the parts of a node that changed."""
    action = Action.NONE
    for changed, part in (
        (old.status.allocatable != new.status.allocatable, Action.UPDATE_NODE_ALLOCATABLE),
        (old.metadata.labels != new.metadata.labels, Action.UPDATE_NODE_LABEL),
        (old.spec.taints != new.spec.taints, Action.UPDATE_NODE_TAINT),
        (old.spec.unschedulable != new.spec.unschedulable, Action.UPDATE_NODE_TAINT),
        (old.status.conditions != new.status.conditions, Action.UPDATE_NODE_CONDITION),
        (old.metadata.annotations != new.metadata.annotations, Action.UPDATE_NODE_ANNOTATION),
        (old.status.declared_features != new.status.declared_features, Action.UPDATE_NODE_DECLARED_FEATURE),
        (old.status.images != new.status.images, Action.UPDATE_NODE_IMAGES),
        (old.status.addresses != new.status.addresses, Action.UPDATE_NODE_INFO),
        (old.status.node_info != new.status.node_info, Action.UPDATE_NODE_INFO),
    ):
        if changed:
            action |= part
    return action


def pod_difference(old: Pod, new: Pod) -> Action:
    """Name the parts of a pod that changed, whether it is placed or pending."""
    action = Action.NONE
    if old.metadata.labels != new.metadata.labels:
        action |= Action.UPDATE_POD_LABEL
    if old.spec.tolerations != new.spec.tolerations:
        action |= Action.UPDATE_POD_TOLERATION
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        action |= Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    if weighs_differently(old, new) and _scaled_down(
        pod_amounts(old, use_status=True), pod_amounts(new, use_status=True)
    ):
        action |= Action.UPDATE_POD_SCALE_DOWN
    if _generated_claims_differ(old.status, new.status):
        action |= Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    if not action and _differs_otherwise(old, new):
        action = Action.UPDATE_OTHER
    return action


def weighs_differently(old: Pod, new: Pod) -> bool:
    """Return whether a placed pod may take something else on its node than before, amounts or volumes."""
    return (
        _resources_differ(old, new)
        or old.spec.overhead != new.spec.overhead
        or old.spec.volumes != new.spec.volumes
        or old.status.allocated_resources != new.status.allocated_resources
        or _pending_resizes(old) != _pending_resizes(new)
    )


def _pending_resizes(pod: Pod) -> list[PodCondition]:
    return [condition for condition in pod.status.conditions if condition.type == "PodResizePending"]


def details_differ(old: Pod, new: Pod) -> bool:
    """Return whether annotations, phase or creation time differ, which rules read of placed pods."""
    return (
        old.metadata.annotations != new.metadata.annotations
        or old.status.phase != new.status.phase
        or old.metadata.creation_timestamp != new.metadata.creation_timestamp
    )


def _differs_otherwise(old: Pod, new: Pod) -> bool:
    return (
        old.spec != new.spec
        or old.metadata.annotations != new.metadata.annotations
        or old.metadata.owner_references != new.metadata.owner_references
    )


def _generated_claims_differ(old: PodStatus, new: PodStatus) -> bool:
    return (
        old.resource_claim_statuses != new.resource_claim_statuses
        or old.extended_resource_claim_status != new.extended_resource_claim_status
    )


def _resources_differ(old: Pod, new: Pod) -> bool:
    return (
        old.spec.containers != new.spec.containers
        or old.spec.init_containers != new.spec.init_containers
        or old.spec.resources != new.spec.resources
        or old.status.container_statuses != new.status.container_statuses
        or old.status.init_container_statuses != new.status.init_container_statuses
        or old.status.resources != new.status.resources
    )


def _scaled_down(old: Amounts, new: Amounts) -> bool:
    """Return whether an amount became less, in thousandths, or is no longer named."""
    return any(name not in new or amount.scaled(-3) > new[name].scaled(-3) for name, amount in old.items())
