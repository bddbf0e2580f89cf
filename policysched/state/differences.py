"""What differs between two versions of an object, in the terms of queue events and of row aspects.

Source: pkg/scheduler/framework/events.go (nodeSchedulingPropertiesChange, PodSchedulingPropertiesChange).
"""

from __future__ import annotations

from policysched.model.objects import Node, Pod, PodCondition
from policysched.model.requests import Requests, placed_requests
from policysched.state.changes import Action
from policysched.state.tables.journal import Aspect

ASPECTS = {
    Action.UPDATE_NODE_ALLOCATABLE: Aspect.CAPACITY,
    Action.UPDATE_NODE_LABEL: Aspect.LABELS,
    Action.UPDATE_NODE_ANNOTATION: Aspect.LABELS,
    Action.UPDATE_NODE_TAINT: Aspect.TAINTS,
    Action.UPDATE_NODE_CONDITION: Aspect.CONDITIONS,
    Action.UPDATE_NODE_DECLARED_FEATURE: Aspect.FEATURES,
    Action.UPDATE_NODE_IMAGES: Aspect.IMAGES,
}


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
    ):
        if changed:
            action |= part
    return action


def aspects_of(action: Action) -> Aspect:
    """Give the row aspects that a node's update touches."""
    aspects = Aspect.NONE
    for part, aspect in ASPECTS.items():
        if action & part:
            aspects |= aspect
    return aspects


def pod_difference(old: Pod, new: Pod) -> Action:
    """Name the parts of a pod that changed, whether it is placed or pending."""
    action = Action.NONE
    if old.metadata.labels != new.metadata.labels:
        action |= Action.UPDATE_POD_LABEL
    if old.spec.tolerations != new.spec.tolerations:
        action |= Action.UPDATE_POD_TOLERATION
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        action |= Action.UPDATE_POD_GATES_ELIMINATED
    if _resources_differ(old, new) and _scaled_down(placed_requests(old), placed_requests(new)):
        action |= Action.UPDATE_POD_SCALE_DOWN
    if not action and _differs_otherwise(old, new):
        action = Action.UPDATE_OTHER
    return action


def weighs_differently(old: Pod, new: Pod) -> bool:
    """Tell whether a placed pod may take something else on its node than before, amounts or volumes."""
    return (
        _resources_differ(old, new)
        or old.spec.overhead != new.spec.overhead
        or old.spec.volumes != new.spec.volumes
        or old.status.allocated_resources != new.status.allocated_resources
        or _pending_resizes(old) != _pending_resizes(new)
    )


def _pending_resizes(pod: Pod) -> list[PodCondition]:
    return [condition for condition in pod.status.conditions if condition.type == "PodResizePending"]


def _differs_otherwise(old: Pod, new: Pod) -> bool:
    return (
        old.spec != new.spec
        or old.metadata.annotations != new.metadata.annotations
        or old.metadata.owner_references != new.metadata.owner_references
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


def _scaled_down(old: Requests, new: Requests) -> bool:
    scalars = dict(new.scalars)
    return (
        new.cpu_millis < old.cpu_millis
        or new.memory_bytes < old.memory_bytes
        or new.ephemeral_bytes < old.ephemeral_bytes
        or any(scalars.get(name, 0) < amount for name, amount in old.scalars)
    )
