"""Which changes of a node can change what an input says."""

from __future__ import annotations

from collections.abc import Iterable

from policysched.framework import Action
from policysched.language.typed import Input
from policysched.rules.node_inputs import WELL_KNOWN_LABELS

_ACTIONS = {
    "labels": Action.UPDATE_NODE_LABEL,
    "annotations": Action.UPDATE_NODE_ANNOTATION,
    "ready": Action.UPDATE_NODE_CONDITION,
    "cordoned": Action.UPDATE_NODE_TAINT,
    "taints": Action.UPDATE_NODE_TAINT,
    "allocatable": Action.UPDATE_NODE_ALLOCATABLE,
    "free": Action.UPDATE_NODE_ALLOCATABLE,
    "cached_image_bytes": Action.UPDATE_NODE_IMAGES,
}


def node_actions(inputs: Iterable[Input]) -> Action:
    """Name the updates of nodes that can change the inputs."""
    actions = Action.NONE
    for item in inputs:
        if item.root != "node":
            continue
        name = item.path[0]
        actions |= Action.UPDATE_NODE_LABEL if name in WELL_KNOWN_LABELS else _ACTIONS.get(name, Action.NONE)
    return actions
