"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes where nodes declare it.

Knows sets of feature names; which features a pod needs is inferred in the model. Sets are judged once each.

Source: plugins/nodedeclaredfeatures/nodedeclaredfeatures.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policysched.framework import (
    SKIP,
    Action,
    Aspect,
    Change,
    Cluster,
    Codes,
    Hint,
    Resource,
    Rows,
    Status,
    unresolvable,
)
from policysched.model.objects import Pod
from policysched.model.pod_requirements import required_features
from policysched.plugins.helper.bases import OwnRowOnly
from policysched.plugins.helper.hints import nodes_of, pods_of, updates_itself
from policysched.plugins.helper.verdicts import Verdicts
from policysched.state.tables.nodes import NodeTable

REASON = "node(s) didn't match Pod's required features"


@dataclass(frozen=True, slots=True)
class Judged:
    """Which sets of declared features are not enough."""

    nodes: NodeTable
    verdicts: Verdicts[frozenset[str]]

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return self.verdicts.nbytes


class NodeDeclaredFeatures(OwnRowOnly):
    """The plugin."""

    name = "NodeDeclaredFeatures"
    filter_reads = Aspect.FEATURES

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Skip pods that need nothing special."""
        required = required_features(pod)
        if not required:
            return SKIP
        nodes = cluster.nodes
        return Judged(nodes, Verdicts(nodes.feature_sets, lambda declared: not required <= declared))

    def filter(self, state: Judged, rows: Rows) -> Codes:
        """Reject rows that lack a feature."""
        return state.verdicts.of(state.nodes.features.data[rows]).astype(np.int32)

    def reason(self, state: Judged, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Name the only reason."""
        return unresolvable(REASON)

    def events(self) -> Sequence[Hint]:
        """Nodes with other features help, and a pod that comes to need others."""
        return (
            Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, _node_helps),
            Hint(Resource.PENDING_POD, Action.UPDATE, _own_update_helps),
        )


def _node_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = nodes_of(change)
    return new is not None and (old is None or old.status.declared_features != new.status.declared_features)


def _own_update_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = pods_of(change)
    if old is None or new is None or not updates_itself(pod, change):
        return False
    return required_features(old) != required_features(new)
