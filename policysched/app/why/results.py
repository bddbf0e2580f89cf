"""`Explanation`, what `policysched why` finds out, as values for programs; `to_dict` is what `-o json` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from policysched.language.messages.diagnostics import Diagnostic

MOST_NAMED: Final = 5
"""How many missing conditions of a group a line for people names."""


class State(StrEnum):
    """What is to say of a pod."""

    PLACEABLE = "Placeable"
    UNSCHEDULABLE = "Unschedulable"
    ERROR = "Error"
    """A plugin fails on it."""
    GATED = "Gated"
    """A PreEnqueue plugin keeps it out of the queue."""
    FINISHED = "Finished"
    TERMINATING = "Terminating"
    STATIC = "Static"
    """The kubelet runs it."""
    OTHER_SCHEDULER = "OtherScheduler"


class RepairKind(StrEnum):
    """What a repair changes."""

    POD = "pod"
    NODE = "node"
    POLICY = "policy"
    POD_AND_POLICY = "pod and policy"
    VICTIMS = "victims"


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that stands against nodes."""

    plugin: str
    text: str
    rejects: int
    """On how many nodes it stands in the way."""
    leaves: int
    """How many nodes it would leave if it were the only one."""
    alone: int
    """On how many nodes nothing else stands in the way."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change with which the pod fits, asked of the engine with the change made."""

    change: RepairKind
    text: str
    nodes: int
    """How many of the group's nodes the pod fits then."""
    example: str
    """One of them. What changes a node changes this one."""
    made: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What was changed, as it would be: `pod` and `node` are whole objects, `rules` are policy/rule names that are left
    out, `victims` keys of pods that go."""

    def to_dict(self) -> dict[str, Any]:
        """Return it without whole objects."""
        return {"change": str(self.change), "text": self.text, "nodes": self.nodes, "example": self.example}


@dataclass(frozen=True, slots=True)
class Group:
    """The nodes against which the same conditions stand."""

    nodes: int
    examples: tuple[str, ...]
    lacks: tuple[str, ...]
    """What stands against them, with the amounts and values of these nodes."""
    repairs: tuple[Repair, ...]

    def missing(self, joint: str) -> str:
        """Return `lacks` in a line: the first ones, and how many more there are."""
        more = len(self.lacks) - MOST_NAMED
        return joint.join((*self.lacks[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "nodes": self.nodes,
            "examples": list(self.examples),
            "lacks": list(self.lacks),
            "repairs": [one.to_dict() for one in self.repairs],
        }


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """What a plugin or a policy gives two nodes, weights counted."""

    plugin: str
    weight: int
    here: int
    there: int
    rules: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """Of a policy, what each rule gives both, before weights."""
    tier: int = 0

    @property
    def lead(self) -> int:
        """How much more the first node gets."""
        return self.here - self.there


@dataclass(frozen=True, slots=True)
class Turn:
    """A weight that turns the order of two nodes, asked of the engine with that weight."""

    plugin: str
    weight: int
    now: int
    selected: tuple[str, ...]
    """The nodes that would be the best then."""


@dataclass(frozen=True, slots=True)
class NodeComparison:
    """Two feasible nodes, side by side."""

    here: str
    there: str
    differences: tuple[ScoreDifference, ...]
    """The highest tier comes first; in each the plugins that give the nodes not the same, the largest one first."""
    sums: tuple[tuple[int, int, int], ...]
    """The tiers, the highest first, each with both nodes' sums of scores."""
    tier: int
    """The highest tier in which the sums differ, 0 where all are the same: it decides."""
    decisive: str
    """The plugin without which the order would be another, or the one that adds most; empty where both get the same."""
    decisive_rule: str
    """Of a policy, the rule that adds most."""
    turns: tuple[Turn, ...] = ()

    @property
    def here_total(self) -> int:
        """The first node's sum of scores in the tier that decides."""
        return next(here for tier, here, _ in self.sums if tier == self.tier)

    @property
    def there_total(self) -> int:
        """The other node's."""
        return next(there for tier, _, there in self.sums if tier == self.tier)

    @property
    def margin(self) -> int:
        """By how much the first node is ahead in that tier."""
        return self.here_total - self.there_total

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
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
class Explanation:
    """Why a pod is where it is, or nowhere."""

    pod: str
    scheduler_name: str
    state: State
    summary: str
    """All of it in one sentence."""
    node: str = ""
    """Where the pod is; empty where it waits."""
    selected: str = ""
    """Where it would go now; for a pod on a node, if it came again."""
    best: tuple[str, ...] = ()
    """The nodes that are equally good, and better than all others."""
    nodes: int = 0
    """How many nodes there are."""
    feasible: int = 0
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)
    """The weighted scores by feasible node and plugin."""
    total: Mapping[str, int] = field(default_factory=dict, repr=False)
    """The sum of the scores of tier 0 by feasible node."""
    conditions: tuple[Condition, ...] = ()
    groups: tuple[Group, ...] = ()
    """Nodes by what stands against them, the fewest conditions first."""
    more_groups: int = 0
    more_nodes: int = 0
    """How many groups there are beyond these, with how many nodes."""
    preemption: Repair | None = None
    """What preemption would do."""
    comparison: NodeComparison | None = None
    notes: tuple[str, ...] = ()
    """What is to know of the answer, one line each."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Errors and warnings of the policies that take part."""
    interrupted: bool = False
    """Whether Ctrl-C ended it before every repair and weight was tried."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values; empty ones are left out."""
        told: dict[str, Any] = {
            "pod": self.pod,
            "schedulerName": self.scheduler_name,
            "state": str(self.state),
            "summary": self.summary,
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
        return {key: value for key, value in told.items() if value not in ("", [], {}, 0) or key in kept}
