"""NodeName, NodeUnschedulable, TaintToleration, NodePorts and NodeDeclaredFeatures: filters with one reason each.

A pod without the corresponding field is skipped instead of passing on every row. Nodes share few distinct sets of
taints and of features, so each set is evaluated once per pod class. The state indexes rows by used port, so unused
ports need almost no time.

Source: plugins/nodename/node_name.go, nodeunschedulable/node_unschedulable.go, tainttoleration/taint_toleration.go,
nodeports/node_ports.go, nodedeclaredfeatures/nodedeclaredfeatures.go, v1.36 and v1.37.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from policysched.framework import (
    SKIP,
    Action,
    Aspect,
    Change,
    ChangedRow,
    ChangedRows,
    Cluster,
    Codes,
    Hint,
    Mask,
    Narrow,
    Nothing,
    Resource,
    Rows,
    ScorePlugin,
    Scores,
    Status,
    WhatIfFilter,
    default_normalize,
    unresolvable,
    unschedulable,
)
from policysched.model.objects import Pod
from policysched.model.pod_requirements import any_conflict, host_ports, required_features
from policysched.model.selection.node_selectors import UNSCHEDULABLE_TAINT, TolerationMatcher
from policysched.plugins.bases import OneReasonFilter, RowTest, ScoresInRange
from policysched.plugins.columns import AnswersByCode
from policysched.plugins.hint_parts import has_place, nodes_of, pods_of, updates_itself
from policysched.state.tables.amounts import WantedPorts


class NodeName(OneReasonFilter[RowTest]):
    """The NodeName plugin: a pod with a nodeName fits only that node."""

    name = "NodeName"
    filters_alone = True
    rejection = unresolvable("node(s) didn't match the requested node name")
    hints = (Hint(Resource.NODE, Action.ADD),)

    def __init__(self, *, narrows: bool = False) -> None:
        """Create the plugin; `narrows` states whether PreFilter narrows the nodes to the named node.

        Args:
            narrows: Whether PreFilter names the node, so that Filter is called for this node only.
        """
        self._narrows = narrows

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> RowTest | Narrow[RowTest] | Nothing:
        """Return a filter state that rejects all nodes but the pod's nodeName; SKIP for pods without a nodeName.

        The name is looked up at each evaluation, so a node with this name can appear later.
        """
        wanted, nodes = pod.spec.node_name, cluster.nodes
        if not wanted:
            return SKIP
        test = RowTest(lambda rows: nodes.name.data[rows] != nodes.strings.sought(wanted))
        return Narrow(test, frozenset((wanted,))) if self._narrows and self.pre_filters else test


def _uncordoned(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = nodes_of(change)
    return new is not None and not new.spec.unschedulable and (old is None or old.spec.unschedulable)


def _tolerates_cordon(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    new = pods_of(change)[1]
    if new is None or not updates_itself(pod, change):
        return False
    return TolerationMatcher(new.spec.tolerations).covers(UNSCHEDULABLE_TAINT)


class NodeUnschedulable(OneReasonFilter[RowTest]):
    """The NodeUnschedulable plugin: rejects cordoned nodes for pods that do not tolerate the nodes' taint."""

    name = "NodeUnschedulable"
    filters_alone = True
    filter_reads = Aspect.TAINTS
    rejection = unresolvable("node(s) were unschedulable")
    hints = (
        Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _uncordoned),
        Hint(Resource.PENDING_POD, Action.UPDATE_POD_TOLERATION, _tolerates_cordon),
    )

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> RowTest | Nothing:
        """Return the state that rejects cordoned nodes; SKIP for pods that tolerate their taint."""
        if TolerationMatcher(pod.spec.tolerations).covers(UNSCHEDULABLE_TAINT):
            return SKIP
        nodes = cluster.nodes
        return RowTest(lambda rows: nodes.unschedulable.data[rows])


@dataclass(frozen=True, slots=True)
class TaintAnswers:
    """Results of a function that evaluates a node's taints for one class of equal pods, cached by set of taints."""

    cluster: Cluster
    answers: AnswersByCode[Any]

    def rejects(self, rows: Rows) -> Mask:
        """Return which nodes have a taint that the pod does not tolerate. Shapes: (R,)."""
        return self.answers.of(self.cluster.nodes.taints.data[rows]).astype(np.bool_)


def _stops_repelling(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = nodes_of(change)
    tolerations = TolerationMatcher(pod.spec.tolerations)
    if new is None or not tolerations.covers_all(new.spec.taints):
        return False
    return old is None or not tolerations.covers_all(old.spec.taints)


class TaintToleration(OneReasonFilter[TaintAnswers], ScoresInRange, ScorePlugin[TaintAnswers]):
    """The TaintToleration plugin: rejects nodes with untolerated taints, prefers few PreferNoSchedule taints."""

    name = "TaintToleration"
    filters_alone = True
    filter_reads = Aspect.TAINTS
    score_reads = Aspect.TAINTS
    normalizes = True
    rejection = unresolvable("node(s) had untolerated taint(s)")
    hints = (
        Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _stops_repelling),
        Hint(Resource.PENDING_POD, Action.UPDATE_POD_TOLERATION, updates_itself),
    )

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> TaintAnswers:
        """Return the filter's state: whether the pod does not tolerate a taint, computed once per set of taints."""
        own = TolerationMatcher(pod.spec.tolerations)
        answers = AnswersByCode(cluster.nodes.taint_sets, lambda taints: not own.covers_all(taints))
        return TaintAnswers(cluster, answers)

    def prepare_score(self, pod: Pod, cluster: Cluster) -> TaintAnswers:
        """Return the score's state: the number of untolerated PreferNoSchedule taints, computed once per taint set."""
        own = TolerationMatcher(pod.spec.tolerations)
        answers = AnswersByCode(cluster.nodes.taint_sets, own.count_intolerable)
        return TaintAnswers(cluster, answers)

    def score(self, state: TaintAnswers, rows: Rows) -> Scores:
        """Return for each node the number of untolerated PreferNoSchedule taints."""
        return state.answers.of(state.cluster.nodes.taints.data[rows]).astype(np.int64)

    def normalize(self, state: TaintAnswers, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - not looked at
        """Scale scores so that the fewest untolerated taints give 100."""
        return default_normalize(scores, feasible, reverse=True)


@dataclass(frozen=True, slots=True)
class RequiredPorts:
    """The filter's state of NodePorts: the host ports that the pod needs."""

    cluster: Cluster
    wanted: WantedPorts

    def rejects(self, rows: Rows) -> Mask:
        """Return the nodes on which any of the ports is in use. Shapes: (R,)."""
        return self.cluster.ports.taken(self.wanted, rows, self.cluster.nodes.size)


def _gives_a_port_back(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    gone = pods_of(change)[0]
    return gone is not None and has_place(gone) and any_conflict(host_ports(pod), host_ports(gone))


class NodePorts(OneReasonFilter[RequiredPorts], WhatIfFilter[RequiredPorts]):
    """The NodePorts plugin: rejects nodes where a needed host port is in use."""

    name = "NodePorts"
    filter_reads = Aspect.PORTS
    rejection = unschedulable("node(s) didn't have free ports for the requested pod ports")
    hints = (
        Hint(Resource.ASSIGNED_POD, Action.DELETE, _gives_a_port_back),
        Hint(Resource.PENDING_POD, Action.DELETE, _gives_a_port_back),
        Hint(Resource.NODE, Action.ADD),
    )

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> RequiredPorts | Nothing:
        """Return the pod's host ports; skip pods without host ports."""
        ports = host_ports(pod)
        return RequiredPorts(cluster, WantedPorts(ports)) if ports else SKIP

    def reads_other_rows(self, state: RequiredPorts) -> bool:  # noqa: ARG002 - the same for all states
        """Return False: the result for a node depends on this node alone."""
        return False

    def filter_changed(self, state: RequiredPorts, changed: ChangedRow) -> Status | None:
        """Return the rejection if a needed port is in use on a simulated node, else None."""
        wanted, row = state.wanted, changed.row
        taken = changed.now(wanted, lambda: changed.cluster.ports.uses(wanted, row))
        taken += changed.more(wanted, lambda placed: wanted.count(placed.pod_resources.ports))
        return self.rejection if taken > 0 else None

    def filter_changed_rows(self, state: RequiredPorts, changed: ChangedRows) -> Codes:
        """Return the reason codes of simulated nodes, which reject nodes on which a needed port is in use."""
        wanted, ports = state.wanted, changed.cluster.ports
        rows = changed.rows.tolist()
        taken = changed.now(wanted, lambda: np.array([ports.uses(wanted, row) for row in rows], np.int64))
        more = changed.weighed(wanted, lambda placed: wanted.count(placed.pod_resources.ports), alike=False)
        return (taken + more > 0).astype(np.int32)


def _declares_others(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = nodes_of(change)
    return new is not None and (old is None or old.status.declared_features != new.status.declared_features)


def _requires_others(pod: Pod, change: Change, cluster: Cluster) -> bool:
    old, new = pods_of(change)
    if old is None or new is None or not updates_itself(pod, change):
        return False
    known = cluster.nodes.known_features
    return required_features(old, known) != required_features(new, known)


class NodeDeclaredFeatures(OneReasonFilter[RowTest]):
    """The NodeDeclaredFeatures plugin: rejects nodes that do not declare the kubelet features that a pod needs."""

    name = "NodeDeclaredFeatures"
    filter_reads = Aspect.FEATURES
    rejection = unresolvable("node(s) didn't match Pod's required features")
    hints = (
        Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, _declares_others),
        Hint(Resource.PENDING_POD, Action.UPDATE, _requires_others),
    )

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> RowTest | Nothing:
        """Return the kubelet features that the pod needs; skip pods that need no feature."""
        nodes = cluster.nodes
        required = required_features(pod, nodes.known_features)
        if not required:
            return SKIP
        answers = AnswersByCode(nodes.feature_sets, lambda declared: not required <= declared)
        return RowTest(lambda rows: answers.of(nodes.features.data[rows]).astype(np.bool_))
