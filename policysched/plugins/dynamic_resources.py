"""DynamicResources, for pods that need no devices: it scores them 0 and has nothing to give back.

Knows claims by their presence and which extended resources have a device class. Pods that do need devices are
turned away before any node is looked at; a resource that has a device class needs them on every node, since which
nodes provide it themselves is not known before filtering.

Source: plugins/dynamicresources/dynamicresources.go, extendeddynamicresources.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from policysched.framework import (
    Action,
    Aspect,
    Change,
    Cluster,
    Hint,
    Resource,
    Rows,
    Scores,
    Status,
    unschedulable,
)
from policysched.model.names import is_device_resource_name
from policysched.model.objects import Pod
from policysched.model.requests import incoming_requests
from policysched.plugins.bases import FinalScores, row_count
from policysched.plugins.guards import Guard
from policysched.state.nodes import NodeTable

CLAIMS = "policysched does not support resource claims yet"
MAPPED = "policysched does not support extended resources of a device class yet"
NOTHING_TO_DEALLOCATE = "no new claims to deallocate"


class DynamicResources(Guard, FinalScores):
    """The plugin."""

    score_reads = Aspect.NONE
    scores_after_pre_filter = True

    def __init__(self) -> None:
        hint = Hint(Resource.DEVICE_CLASS, Action.ALL, _device_class_helps)
        super().__init__("DynamicResources", _missing, (hint,), _mapped_resources)

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:  # noqa: ARG002 - the protocol's signature
        """Take part with every pod."""
        return cluster.nodes

    def score(self, state: NodeTable, rows: Rows) -> Scores:
        """Score every row 0."""
        return np.zeros(row_count(state, rows), np.int64)

    def post_filter(self, pod: Pod) -> Status:  # noqa: ARG002 - the protocol's signature
        """Find no claim to take back."""
        return unschedulable(NOTHING_TO_DEALLOCATE)


def _missing(pod: Pod, cluster: Cluster) -> str:
    if pod.spec.resource_claims:
        return CLAIMS
    if not cluster.mapped_resources:
        return ""
    for name, amount in incoming_requests(pod).scalars:
        if amount > 0 and is_device_resource_name(name) and name in cluster.mapped_resources:
            return f"{MAPPED}: {name} is one of device class {cluster.mapped_resources[name]}"
    return ""


def _device_class_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    return not _missing(pod, cluster)


def _mapped_resources(cluster: Cluster) -> Hashable:
    return tuple(cluster.mapped_resources.items())
