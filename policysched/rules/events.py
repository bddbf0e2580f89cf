"""Which changes can change what an input says of a row, or of all rows."""

from __future__ import annotations

from collections.abc import Iterable

from policysched.framework import Action, Hint, Resource
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


def beyond_rows(inputs: Iterable[Input]) -> list[Hint]:
    """Name the changes that can change what the inputs say of every row, wherever they happen."""
    hints = {
        "cluster.nodes": Hint(Resource.NODE, Action.ADD | Action.DELETE),
        "cluster.pods": Hint(Resource.ASSIGNED_POD, Action.ADD | Action.DELETE),
        "pod.image_bytes": Hint(Resource.NODE, Action.ADD | Action.DELETE | Action.UPDATE_NODE_IMAGES),
    }
    read = {item.text for item in inputs}
    return [hint for text, hint in hints.items() if text in read]
