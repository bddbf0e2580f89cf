"""TaintToleration: keep pods off nodes whose taints they do not tolerate, and prefer nodes with fewer such taints.

Knows taints and tolerations. Nodes share few distinct sets of taints, so each set is judged once per pod class.

Source: plugins/tainttoleration/taint_toleration.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policysched.framework import (
    Action,
    Aspect,
    Change,
    Cluster,
    Codes,
    Hint,
    Mask,
    Resource,
    Rows,
    Scores,
    Status,
    default_normalize,
    unresolvable,
)
from policysched.model.objects import Pod, Taint, Toleration
from policysched.model.selection.node_selectors import count_intolerable, preferring_tolerations, tolerates_all
from policysched.plugins.helper.bases import OwnRowOnly, ScoresInRange
from policysched.plugins.helper.hints import nodes_of, updates_itself
from policysched.plugins.helper.verdicts import Verdicts
from policysched.state.tables.nodes import NodeTable

BYTES_PER_TOLERATION = 256
REASON = "node(s) had untolerated taint(s)"


@dataclass(frozen=True, slots=True)
class Judged:
    """What a pod class makes of each set of taints."""

    nodes: NodeTable
    verdicts: Verdicts[tuple[Taint, ...]]
    tolerations: Sequence[Toleration]

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return BYTES_PER_TOLERATION * len(self.tolerations) + self.verdicts.nbytes


class TaintToleration(OwnRowOnly, ScoresInRange):
    """The plugin."""

    name = "TaintToleration"
    filter_reads = Aspect.TAINTS
    score_reads = Aspect.TAINTS
    normalizes = True

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Judge sets of taints by whether one of them repels the pod."""
        tolerations = pod.spec.tolerations
        nodes = cluster.nodes
        verdicts = Verdicts(nodes.taint_sets, lambda taints: not tolerates_all(tolerations, taints))
        return Judged(nodes, verdicts, tolerations)

    def filter(self, state: Judged, rows: Rows) -> Codes:
        """Reject rows with a taint that repels the pod."""
        return state.verdicts.of(state.nodes.taints.data[rows]).astype(np.int32)

    def reason(self, state: Judged, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Name the only reason."""
        return unresolvable(REASON)

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Judge sets of taints by how many of them the pod would rather avoid."""
        tolerations = preferring_tolerations(pod.spec.tolerations)
        nodes = cluster.nodes
        verdicts = Verdicts(nodes.taint_sets, lambda taints: count_intolerable(tolerations, taints))
        return Judged(nodes, verdicts, tolerations)

    def score(self, state: Judged, rows: Rows) -> Scores:
        """Count the taints that the pod would rather avoid."""
        return state.verdicts.of(state.nodes.taints.data[rows]).astype(np.int64)

    def normalize(self, state: Judged, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - not looked at
        """Give the fewest taints the highest score."""
        return default_normalize(scores, feasible, reverse=True)

    def events(self) -> Sequence[Hint]:
        """Nodes that stop repelling the pod help, and so do its own new tolerations."""
        return (
            Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _node_helps),
            Hint(Resource.PENDING_POD, Action.UPDATE_POD_TOLERATION, _own_update_helps),
        )


def _node_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = nodes_of(change)
    tolerations = pod.spec.tolerations
    if new is None or not tolerates_all(tolerations, new.spec.taints):
        return False
    return old is None or not tolerates_all(tolerations, old.spec.taints)


def _own_update_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    return updates_itself(pod, change)
