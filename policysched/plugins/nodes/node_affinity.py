"""NodeAffinity: nodeSelector, required and preferred node affinity, and what the configuration adds to them.

Knows labels and names of nodes. Terms that all name their nodes narrow the search to those before any filter runs;
whether such a term is otherwise valid does not matter for that, only for the filter.

Source: plugins/nodeaffinity/node_affinity.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policysched.framework import (
    MAX_NODE_SCORE,
    SKIP,
    Action,
    Aspect,
    Change,
    Cluster,
    Code,
    Codes,
    Hint,
    Mask,
    Narrow,
    Resource,
    Rows,
    Scores,
    Status,
    default_normalize,
    unresolvable,
)
from policysched.model import objects
from policysched.model.objects import Node, NodeSelector, NodeSelectorTerm, Pod
from policysched.model.selection.node_selectors import (
    NAME_FIELD,
    NodeSelectorMatcher,
    WeightedTerm,
    node_selector,
    preferred_nodes,
    preferred_terms,
    required_nodes,
)
from policysched.model.selection.selectors import SelectorError
from policysched.plugins.arguments import Arguments, PluginArguments, converted, refusal
from policysched.plugins.helper.bases import OwnRowOnly, row_count
from policysched.plugins.helper.hints import nodes_of
from policysched.plugins.nodes.node_selection import AskedRows, SelectorTest, terms_nbytes
from policysched.state.tables.int64_arrays import quotients
from policysched.state.tables.nodes import NodeTable

ENFORCED, UNMATCHED = 1, 2
REASONS = {
    ENFORCED: "node(s) didn't match scheduler-enforced node affinity",
    UNMATCHED: "node(s) didn't match Pod's node affinity/selector",
}
CONFLICT = "pod affinity terms conflict"


@dataclass(frozen=True, slots=True)
class Demands:
    """What nodes must be, by the configuration and by the pod."""

    enforced: SelectorTest | None
    own: SelectorTest

    @property
    def nbytes(self) -> int:
        """The memory that the pod's own demands take. Units: bytes."""
        return self.own.nbytes


@dataclass(frozen=True, slots=True)
class Wishes:
    """Terms with what they add to the score."""

    nodes: NodeTable
    weighted: tuple[WeightedTerm, ...]
    nbytes: int
    """The memory that the terms take. Units: bytes."""


class NodeAffinity(OwnRowOnly):
    """The plugin.

    Args:
        added_affinity: demands and wishes that hold for every pod of the profile.

    Raises:
        SelectorError: the added affinity is not valid.
    """

    name = "NodeAffinity"
    filter_reads = Aspect.LABELS
    score_reads = Aspect.LABELS
    normalizes = True

    def __init__(self, added_affinity: objects.NodeAffinitySpec | None = None) -> None:
        added = added_affinity or objects.NodeAffinitySpec()
        self._enforced = None if added.required is None else node_selector(added.required)
        self._adds_wishes = bool(added.preferred)
        self._added_wishes = preferred_terms(added.preferred)

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Compile the demands, and narrow the nodes to the named ones where every term names some."""
        required = _node_affinity(pod).required
        if required is None and self._enforced is None and not pod.spec.node_selector:
            return SKIP
        demands = self.filter_alone(pod, cluster)
        names = _named_nodes(required)
        if names is None:
            return demands
        return Narrow(demands, names) if names else unresolvable(CONFLICT)

    def filter_alone(self, pod: Pod, cluster: Cluster) -> Demands:
        """Compile the demands."""
        enforced = None if self._enforced is None else SelectorTest(self._enforced, cluster.nodes)
        return Demands(enforced, SelectorTest(required_nodes(pod), cluster.nodes))

    def filter(self, state: Demands, rows: Rows) -> Codes:
        """Reject rows that are not what is demanded, by the configuration first."""
        codes = np.where(state.own(rows), np.int32(0), np.int32(UNMATCHED))
        if state.enforced is not None:
            codes[~state.enforced(rows)] = ENFORCED
        return codes

    def reason(self, state: Demands, code: int) -> Status:  # noqa: ARG002 - the code says it all
        """Translate a code."""
        return unresolvable(REASONS[code])

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Compile the wishes; an invalid one, which the API server would not let through, is an error."""
        if not _node_affinity(pod).preferred and not self._adds_wishes:
            return SKIP
        try:
            wishes = (*self._added_wishes, *preferred_nodes(pod))
        except SelectorError as error:
            return Status(Code.ERROR, (str(error),))
        return Wishes(cluster.nodes, wishes, terms_nbytes(one.term for one in wishes))

    score_alone = prepare_score

    def score(self, state: Wishes, rows: Rows) -> Scores:
        """Add up the weights of the wishes that a row fulfils."""
        scores = np.zeros(row_count(state.nodes, rows), np.int64)
        asked = AskedRows(state.nodes, rows)
        for one in state.weighted:
            held = asked.term(one.term)
            if held is not False:
                np.add(scores, one.weight, out=scores, where=held)
        return scores

    def normalize(self, state: Wishes, scores: Scores, feasible: Mask) -> Scores:
        """Scale by the highest sum."""
        if self.stays_in_range(state):
            return default_normalize(scores, feasible, reverse=False)
        highest = int(scores.max(initial=0, where=feasible))
        return quotients(scores * MAX_NODE_SCORE, highest) if highest else scores

    def stays_in_range(self, state: Wishes) -> bool:
        """Tell whether no weight is below 0; the API server lets no such one through."""
        return all(one.weight >= 0 for one in state.weighted)

    def events(self) -> Sequence[Hint]:
        """Nodes that come to match help."""
        return (Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._node_helps),)

    def _node_helps(self, pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG002 - a hint's signature
        old, new = nodes_of(change)
        if new is None or (self._enforced is not None and not _matches(self._enforced, new)):
            return False
        demanded = required_nodes(pod)
        return _matches(demanded, new) and (old is None or not _matches(demanded, old))


def _matches(selector: NodeSelectorMatcher, node: Node) -> bool:
    return selector.matches(node.metadata.name, node.metadata.labels)


def _node_affinity(pod: Pod) -> objects.NodeAffinitySpec:
    affinity = pod.spec.affinity
    return (affinity and affinity.node_affinity) or objects.NodeAffinitySpec()


def _named_nodes(required: NodeSelector | None) -> frozenset[str] | None:
    """Give the only nodes that the terms allow by name, None where some term leaves the name open."""
    if required is None or not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        own = _names_of(term)
        if own is None:
            return None
        names |= own
    return frozenset(names)


def _names_of(term: NodeSelectorTerm) -> set[str] | None:
    asked = [set(one.values) for one in term.match_fields if one.key == NAME_FIELD and one.operator == "In"]
    return set.intersection(*asked) if asked else None


class NodeAffinityArguments(PluginArguments, frozen=True):
    """The arguments of NodeAffinity."""

    added_affinity: objects.NodeAffinitySpec | None = None


def node_affinity(arguments: Arguments) -> NodeAffinity:
    """Make NodeAffinity.

    Raises:
        UsageError: the added affinity is not valid.
    """
    added = converted(NodeAffinity.name, arguments, NodeAffinityArguments).added_affinity
    try:
        return NodeAffinity(added)
    except SelectorError as error:
        raise refusal(NodeAffinity.name, "addedAffinity", str(error)) from error
