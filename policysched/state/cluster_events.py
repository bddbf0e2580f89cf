"""Changes of objects in the cluster (kube-scheduler's ActionType and EventResource), found by comparing versions.

Queueing hints name events to select the changes that can help a rejected pod.

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
from policysched.model.requests import NONE_MISSING, Amounts, AmountsInUse


class Action(IntFlag):
    """What happened to an object, as bits: added, deleted, or which part of it was updated."""

    NONE = 0
    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    """A node's taints or its `spec.unschedulable` changed."""
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
    """A node's addresses or software versions changed; kube-scheduler has no action for them."""
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
    """A change of one object, which queueing hints get: added (`old` is None), updated or deleted (`new` is None)."""

    resource: Resource | CustomResource
    action: Action
    old: Any = None
    new: Any = None
    row: int = -1
    """The row (number) of the changed node, or of the changed pod's node; -1 if there is no node."""
    metric: MetricKey | None = None
    """The metric whose values changed; None if an object changed."""

    @property
    def nothing(self) -> bool:
        """Whether nothing changed that scheduling reads."""
        return self.action is _NONE or self.resource is _OTHER


def change_of(resource: Resource | CustomResource, old: Any, new: Any) -> Change:
    """Return the change from one version of an object to another; an update is not divided by changed parts."""
    if new is None:
        return Change(resource, Action.NONE if old is None else Action.DELETE, old)
    return Change(resource, Action.ADD if old is None else Action.NONE if old == new else Action.UPDATE_OTHER, old, new)


def departure(pod: Pod, node: str, row: int) -> Change:
    """Return the change that informs queueing hints that a pod left its node or its nominated node."""
    if pod.spec.node_name != node:
        pod = replace(pod, spec=replace(pod.spec, node_name=node))
    return Change(Resource.ASSIGNED_POD, Action.DELETE, pod, None, row)


def node_difference(old: Node, new: Node) -> Action:
    """Return the parts of a node, such as labels and taints, that differ between two versions."""
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


def pod_difference(old: Pod, new: Pod, in_use: AmountsInUse) -> Action:
    """Return the parts of a pod that differ between two versions; `in_use` computes the amounts that the pod uses."""
    action = Action.NONE
    if old.metadata.labels != new.metadata.labels:
        action |= Action.UPDATE_POD_LABEL
    if old.spec.tolerations != new.spec.tolerations:
        action |= Action.UPDATE_POD_TOLERATION
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        action |= Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    if weighs_differently(old, new) and _scaled_down(in_use(old, NONE_MISSING), in_use(new, NONE_MISSING)):
        action |= Action.UPDATE_POD_SCALE_DOWN
    if _generated_claims_differ(old.status, new.status):
        action |= Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    if not action and _differs_otherwise(old, new):
        action = Action.UPDATE_OTHER
    return action


def weighs_differently(old: Pod, new: Pod) -> bool:
    """Return whether the resources or volumes of a placed pod may differ between two versions."""
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
    """Return whether annotations, phase or creation time of a placed pod differ between two versions."""
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
    """Return whether any amount (in thousandths) is smaller in `new` than in `old`, or missing in `new`."""
    return any(name not in new or amount.scaled(-3) > new[name].scaled(-3) for name, amount in old.items())
