"""Results of `policysched why` as values; `to_dict` is the output of `-o json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from policysched.app.why.changes import Edit
from policysched.language.messages.diagnostics import Diagnostic

MOST_NAMED: Final = 5
"""Largest number of conditions of a group in a line for people."""


class State(StrEnum):
    """State of the pod that `why` explains."""

    PLACEABLE = "Placeable"
    UNSCHEDULABLE = "Unschedulable"
    ERROR = "Error"
    """A plugin fails for the pod."""
    GATED = "Gated"
    """A PreEnqueue plugin rejects the pod."""
    FINISHED = "Finished"
    TERMINATING = "Terminating"
    STATIC = "Static"
    """The kubelet runs the pod from a file."""
    OTHER_SCHEDULER = "OtherScheduler"


class RepairKind(StrEnum):
    """Kind of object that a repair changes."""

    POD = "pod"
    NODE = "node"
    POLICY = "policy"
    POD_AND_POLICY = "pod and policy"
    VICTIMS = "victims"
    GROUP = "pod group"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that excludes nodes."""

    plugin: str
    text: str
    rejects: int
    """Number of nodes that the condition excludes."""
    leaves: int
    """Number of nodes that would be feasible if the condition were the only condition."""
    alone: int
    """Number of nodes that only this condition excludes."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change with which the pod fits, confirmed by the engine."""

    change: RepairKind
    text: str
    nodes: int
    """Number of nodes in the group that the pod fits with the change."""
    example: str
    """Name of a node that the pod fits with the change; if the change edits a node, it edits this node."""
    made: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The changed objects: whole `pod` and `node`, names of removed `rules`, keys of evicted `victims`."""
    edits: tuple[Edit, ...] = field(default=(), repr=False, compare=False)
    """Edits that apply the change to a pod."""

    def to_dict(self) -> dict[str, Any]:
        """Return the repair without whole objects."""
        return {"change": str(self.change), "text": self.text, "nodes": self.nodes, "example": self.example}


@dataclass(frozen=True, slots=True)
class Group:
    """A group of nodes that the same conditions exclude, with repairs."""

    nodes: int
    examples: tuple[str, ...]
    lacks: tuple[str, ...]
    """The group's conditions as texts, with amounts and values of the group's nodes."""
    repairs: tuple[Repair, ...]

    def missing(self, joint: str) -> str:
        """Return the first conditions of the group in one text, with the number of omitted conditions."""
        more = len(self.lacks) - MOST_NAMED
        return joint.join((*self.lacks[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])))

    def to_dict(self) -> dict[str, Any]:
        """Return the group as plain values."""
        return {
            "nodes": self.nodes,
            "examples": list(self.examples),
            "lacks": list(self.lacks),
            "repairs": [one.to_dict() for one in self.repairs],
        }


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """The weighted scores of one plugin or policy for two nodes."""

    plugin: str
    weight: int
    here: int
    there: int
    rules: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """For a policy: the unweighted scores of each rule for both nodes."""
    tier: int = 0

    @property
    def lead(self) -> int:
        """Score of the first node minus the score of the second node."""
        return self.here - self.there


@dataclass(frozen=True, slots=True)
class ReversingWeight:
    """A weight that reverses the order of two nodes, confirmed by the engine."""

    plugin: str
    weight: int
    now: int
    selected: tuple[str, ...]
    """Nodes that would be best with the weight."""


@dataclass(frozen=True, slots=True)
class NodeComparison:
    """Comparison of two feasible nodes by their scores."""

    here: str
    there: str
    differences: tuple[ScoreDifference, ...]
    """Plugins with different scores for both nodes, highest tier first, largest difference first."""
    sums: tuple[tuple[int, int, int], ...]
    """Tiers, highest first, with the sums of scores of both nodes."""
    tier: int
    """Highest tier with different sums, which decides; 0 if the sums of all tiers are equal."""
    decisive: str
    """Plugin without which the other node would win; without such a plugin, the plugin that adds most to the lead."""
    decisive_rule: str
    """If the decisive plugin is a policy: the rule that adds most to the lead."""
    turns: tuple[ReversingWeight, ...] = ()

    @property
    def here_total(self) -> int:
        """Sum of scores of the first node in the deciding tier."""
        return next(here for tier, here, _ in self.sums if tier == self.tier)

    @property
    def there_total(self) -> int:
        """Sum of scores of the other node in the deciding tier."""
        return next(there for tier, _, there in self.sums if tier == self.tier)

    @property
    def margin(self) -> int:
        """Lead of the first node in the deciding tier."""
        return self.here_total - self.there_total

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        differences = {
            one.plugin: {"weight": one.weight, "scores": [one.here, one.there], "lead": one.lead}
            | ({"tier": one.tier} if one.tier else {})
            | ({"rules": {name: list(both) for name, both in one.rules.items()}} if one.rules else {})
            for one in self.differences
        }
        turns = [
            {"plugin": one.plugin, "weight": one.weight, "now": one.now, "best": list(one.selected)}
            for one in self.turns
        ]
        return {
            "nodes": [self.here, self.there],
            "totals": [self.here_total, self.there_total],
            "margin": self.margin,
            **({"tier": self.tier, "tiers": self._sums()} if len(self.sums) > 1 else {}),
            "decisive": self.decisive,
            **({"decisiveRule": self.decisive_rule} if self.decisive_rule else {}),
            "differences": differences,
            "turns": turns,
        }

    def _sums(self) -> dict[str, list[int]]:
        return {str(tier): [here, there] for tier, here, there in self.sums}


@dataclass(frozen=True, slots=True)
class GroupRepair:
    """A change with which a pod group fits, confirmed by the cycle of the group."""

    change: RepairKind
    text: str
    placed: int
    """Number of members that get nodes with the change."""

    def to_dict(self) -> dict[str, Any]:
        """Return the repair as plain values."""
        return {"change": str(self.change), "text": self.text, "placed": self.placed}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupExplanation:
    """Why the pod group of a pod fits or waits."""

    group: str
    """The pod group: `namespace/name`."""
    result: str
    """`Scheduled`, `Unschedulable` or `Error`; empty if the pod has a node, so that the group is not decided."""
    summary: str
    """The explanation in one sentence."""
    message: str = ""
    """The message of the group's condition."""
    min_count: int
    placed: int
    """Number of members that have nodes."""
    pods: int
    """Number of members without a node."""
    fitting: int | None = None
    """Number of members that fit at the same time; None if no member is tried."""
    placement: str = ""
    """Name of the placement, such as a rack, on which `fitting` members fit; empty if all nodes can be used."""
    repairs: tuple[GroupRepair, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain values, without empty values."""
        fields = {
            "group": self.group, "result": self.result, "summary": self.summary, "message": self.message,
            "minCount": self.min_count, "placed": self.placed, "pods": self.pods, "fitting": self.fitting,
            "placement": self.placement,
            "repairs": [one.to_dict() for one in self.repairs],
        }  # fmt: skip
        return {key: value for key, value in fields.items() if value not in ("", [], None)}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a pod is on its node or pending."""

    pod: str
    scheduler_name: str
    state: State
    summary: str
    """The explanation in one sentence."""
    node: str = ""
    """Node of the pod; empty if the pod is pending."""
    selected: str = ""
    """Node that the pod would get now; for a placed pod, the node that an identical new pod would get."""
    best: tuple[str, ...] = ()
    """The equally good nodes from which `selected` is drawn."""
    nodes: int = 0
    """Number of nodes in the cluster."""
    feasible: int = 0
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)
    """Weighted scores by feasible node and plugin."""
    total: Mapping[str, int] = field(default_factory=dict, repr=False)
    """Sum of the scores of tier 0, the tier of the default plugins, by feasible node."""
    conditions: tuple[Condition, ...] = ()
    groups: tuple[Group, ...] = ()
    """Nodes grouped by conditions, fewest conditions first."""
    more_groups: int = 0
    more_nodes: int = 0
    """Number of nodes in the groups that `groups` omits."""
    preemption: Repair | None = None
    """The effect of preemption."""
    comparison: NodeComparison | None = None
    pod_group: GroupExplanation | None = None
    """Why the pod group of the pod fits or waits; None for a pod without a group."""
    notes: tuple[str, ...] = ()
    """Notes about the explanation, one line each."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Errors and warnings of the policies that take part."""
    interrupted: bool = False
    """Whether Ctrl-C ended the search for repairs and weights."""

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain values, without empty values."""
        fields: dict[str, Any] = {
            "pod": self.pod,
            "schedulerName": self.scheduler_name,
            "state": str(self.state),
            "summary": self.summary,
            "podGroup": self.pod_group.to_dict() if self.pod_group else {},
            "node": self.node,
            "selected": self.selected,
            "best": list(self.best),
            "nodes": self.nodes,
            "feasible": self.feasible,
            "conditions": [
                {"plugin": one.plugin, "text": one.text, "rejects": one.rejects, "leaves": one.leaves,
                 "alone": one.alone}
                for one in self.conditions
            ],
            "groups": [one.to_dict() for one in self.groups],
            "moreGroups": {"groups": self.more_groups, "nodes": self.more_nodes} if self.more_groups else {},
            "preemption": self.preemption.to_dict() if self.preemption else {},
            "comparison": self.comparison.to_dict() if self.comparison else {},
            "notes": list(self.notes),
            "interrupted": self.interrupted,
        }  # fmt: skip
        kept = {"nodes", "feasible"} if self.state in {State.PLACEABLE, State.UNSCHEDULABLE} else set()
        return {key: value for key, value in fields.items() if value not in ("", [], {}, 0) or key in kept}
