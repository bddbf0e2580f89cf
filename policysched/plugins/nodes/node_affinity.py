"""NodeAffinity: filters and scores nodes by nodeSelector, node affinity and the configuration's addedAffinity.

The plugin uses labels and names of nodes. If all required terms name nodes, only these nodes are evaluated by any
filter, even if such a term is otherwise invalid; the filter checks that.

Source: plugins/nodeaffinity/node_affinity.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
    FilterPlugin,
    Hint,
    Mask,
    Narrow,
    PreparedFilter,
    PreparedScore,
    Resource,
    Rows,
    ScorePlugin,
    Scores,
    Status,
    default_normalize,
    unresolvable,
)
from policysched.model import objects
from policysched.model.objects import Node, NodeSelector, Pod
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
from policysched.plugins.arguments import Fault, PluginArguments
from policysched.plugins.columns import row_count
from policysched.plugins.hint_parts import nodes_of
from policysched.plugins.nodes.node_selection import AskedRows, SelectorTest
from policysched.state.tables.columns import quotients
from policysched.state.tables.nodes import NodeTable

ENFORCED, UNMATCHED = 1, 2
REASONS = {
    ENFORCED: "node(s) didn't match scheduler-enforced node affinity",
    UNMATCHED: "node(s) didn't match Pod's node affinity/selector",
}


@dataclass(frozen=True, slots=True)
class RequiredNodes:
    """The filter's state of NodeAffinity: the required node selectors of the configuration and of the pod."""

    enforced: SelectorTest | None
    own: SelectorTest


@dataclass(frozen=True, slots=True)
class PreferredNodes:
    """The score's state of NodeAffinity: preferred node selector terms with their weights."""

    nodes: NodeTable
    weighted: tuple[WeightedTerm, ...]


class NodeAffinity(FilterPlugin[RequiredNodes], ScorePlugin[PreferredNodes]):
    """The NodeAffinity plugin: filters nodes by required, and scores them by preferred node selector terms.

    Args:
        added_affinity: required and preferred terms for every pod of the profile.

    Raises:
        SelectorError: the added affinity is invalid.
    """

    name = "NodeAffinity"
    filter_reads = Aspect.LABELS
    score_reads = Aspect.LABELS
    normalizes = True
    filters_alone = scores_alone = True

    def __init__(self, added_affinity: objects.NodeAffinitySpec | None = None) -> None:
        added = added_affinity or objects.NodeAffinitySpec()
        self._enforced = None if added.required is None else node_selector(added.required)
        self._has_preferred = bool(added.preferred)
        self._preferred = preferred_terms(added.preferred)

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> PreparedFilter[RequiredNodes]:
        """Return the compiled required node selectors; narrow the nodes to names if every term requires node names."""
        required = _node_affinity(pod).required
        if self.pre_filters and required is None and self._enforced is None and not pod.spec.node_selector:
            return SKIP
        enforced = None if self._enforced is None else SelectorTest(self._enforced, cluster.nodes)
        state = RequiredNodes(enforced, SelectorTest(required_nodes(pod), cluster.nodes))
        names = _named_nodes(required) if self.pre_filters else None
        if names is None:
            return state
        return Narrow(state, names) if names else unresolvable("pod affinity terms conflict")

    def filter(self, state: RequiredNodes, rows: Rows) -> Codes:
        """Reject nodes that do not match the required terms of the configuration or of the pod."""
        codes = np.where(state.own(rows), np.int32(0), np.int32(UNMATCHED))
        if state.enforced is not None:
            codes[~state.enforced(rows)] = ENFORCED
        return codes

    def reason(self, state: RequiredNodes, code: int) -> Status:  # noqa: ARG002 - the code says it all
        """Return the rejection status that a reason code of the filter stands for."""
        return unresolvable(REASONS[code])

    def prepare_score(self, pod: Pod, cluster: Cluster) -> PreparedScore[PreferredNodes]:
        """Return the compiled preferred terms; an error status for an invalid term, which API servers reject."""
        if not _node_affinity(pod).preferred and not self._has_preferred:
            return SKIP
        try:
            terms = (*self._preferred, *preferred_nodes(pod))
        except SelectorError as error:
            return Status(Code.ERROR, (str(error),))
        return PreferredNodes(cluster.nodes, terms)

    def score(self, state: PreferredNodes, rows: Rows) -> Scores:
        """Return for each node the sum of the weights of the preferred terms that the node matches."""
        scores = np.zeros(row_count(state.nodes, rows), np.int64)
        asked = AskedRows(state.nodes, rows)
        for one in state.weighted:
            held = asked.term(one.term)
            if held is not False:
                np.add(scores, one.weight, out=scores, where=held)
        return scores

    def normalize(self, state: PreferredNodes, scores: Scores, feasible: Mask) -> Scores:
        """Scale scores so that the highest becomes 100."""
        if self.stays_in_range(state):
            return default_normalize(scores, feasible, reverse=False)
        highest = int(scores.max(initial=0, where=feasible))
        return quotients(scores * MAX_NODE_SCORE, highest) if highest else scores

    def stays_in_range(self, state: PreferredNodes) -> bool:
        """Return whether no weight is negative; API servers reject negative weights."""
        return all(one.weight >= 0 for one in state.weighted)

    def excludes_all(self, nodes: Iterable[Node]) -> bool:
        """Return whether the configuration's required terms match none of the nodes."""
        return self._enforced is not None and not any(_matches(self._enforced, one) for one in nodes)

    def events(self) -> Sequence[Hint]:
        """Return the hint for nodes: a node that starts to match the pod can help."""
        return (Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._node_helps),)

    def _node_helps(self, pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG002 - a hint's signature
        old, new = nodes_of(change)
        if new is None:
            return False
        required = required_nodes(pod)
        return self._admits(required, new) and (old is None or not self._admits(required, old))

    def _admits(self, required: NodeSelectorMatcher, node: Node) -> bool:
        """Return whether a node matches the required terms of the configuration and of a pod."""
        return (self._enforced is None or _matches(self._enforced, node)) and _matches(required, node)


def _matches(selector: NodeSelectorMatcher, node: Node) -> bool:
    return selector.matches(node.metadata.name, node.metadata.labels)


def _node_affinity(pod: Pod) -> objects.NodeAffinitySpec:
    affinity = pod.spec.affinity
    return (affinity and affinity.node_affinity) or objects.NodeAffinitySpec()


def _named_nodes(required: NodeSelector | None) -> frozenset[str] | None:
    """Return the only nodes that the terms allow by name; None if a term does not restrict node names."""
    if required is None or not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        named = [set(one.values) for one in term.match_fields if one.key == NAME_FIELD and one.operator == "In"]
        if not named:
            return None
        names |= set.intersection(*named)
    return frozenset(names)


class NodeAffinityArguments(PluginArguments, frozen=True):
    """Arguments of NodeAffinity in `pluginConfig`."""

    added_affinity: objects.NodeAffinitySpec | None = None

    def faults(self) -> Iterator[Fault]:
        """Yield the invalid fields of the arguments, each with the reason."""
        try:
            NodeAffinity(self.added_affinity)
        except SelectorError as error:
            yield "addedAffinity", str(error)


def node_affinity(given: NodeAffinityArguments) -> NodeAffinity:
    """Create NodeAffinity from its arguments."""
    return NodeAffinity(given.added_affinity)
