"""Results of `policysched plan` as values; `to_dict` is the output of `-o json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from policysched.app.amounts import counted, rounded
from policysched.model.quantity import parse

EXAMPLES: Final = 3
NEW_NODE: Final = "new node"
NEW_NODE_SCORE: Final = f"{NEW_NODE}: score of "
"""First words of a cause's text if the cause is the score of a node that the change adds."""


class Effect(StrEnum):
    """Effect of a change on a pod, for programs; `text` is the text for people."""

    UNSCHEDULABLE = "unschedulable"
    """The pod has a node without the change and no node with the change."""
    SCHEDULABLE = "schedulable"
    """The pod has no node without the change and a node with the change."""
    MOVES = "moves"
    """The pod is placed on another node with the change than without the change."""
    STAYS = "stays"
    """With the change, the pod is placed on the node where it runs; without the change, on another node."""
    PREEMPTED = "preempted"
    """The pod is evicted for a pending pod only with the change."""
    SPARED = "spared"
    """The pod is evicted for a pending pod only without the change."""
    ADDED = "added"
    """The pod is an additional replica."""
    REMOVED = "removed"
    """The pod is a removed replica, or is not scheduled any more."""

    @property
    def text(self) -> str:
        """The effect on one pod as text."""
        return self.of(1)

    @property
    def short(self) -> str:
        """The effect in a table: `no node`, `another node`, `current node`."""
        return self.text.removeprefix(_GET).removeprefix("would ").replace("be ", "").replace("its ", "")

    def of(self, pods: int) -> str:
        """The effect on several pods as text."""
        return _TEXTS[self] if pods == 1 or self is not Effect.STAYS else "would get their current nodes"


_TEXTS: Final = {
    Effect.UNSCHEDULABLE: "would get no node",
    Effect.SCHEDULABLE: "would get a node",
    Effect.MOVES: "would get another node",
    Effect.STAYS: "would get its current node",
    Effect.PREEMPTED: "would be preempted",
    Effect.SPARED: "would not be preempted",
    Effect.ADDED: "would be added",
    Effect.REMOVED: "would be removed",
}


_GET: Final = "would get "


def _kind_first(workload: str) -> str:
    """Convert `namespace/name (Kind)` to `Kind namespace/name`."""
    name, _, kind = workload.removesuffix(")").rpartition(" (")
    return f"{kind} {name}"


@dataclass(frozen=True, slots=True)
class PodEffect:
    """The effect of a change on one pod."""

    pod: str
    workload: str
    effect: Effect
    before: str
    """The pod's node without the change; empty if the pod has no node."""
    after: str
    """The pod's node with the change; empty if the pod has no node."""
    ties: int = 1
    """Number of equally good nodes for the pod with the change."""
    reason: str = ""
    """Reason why the pod has no node."""
    node: str = ""
    """Node on which the pod is; empty for a pending pod."""
    runs: bool = False
    """Whether the pod keeps running on `node`; then `before` and `after` are the nodes of an identical new pod."""
    by: str = ""
    """Reason of the effect, the same text for many pods; empty if other pods used or freed the resources."""

    @property
    def namespace(self) -> str:
        """Namespace of the pod."""
        return self.pod.partition("/")[0]

    @property
    def is_alone(self) -> bool:
        """Whether the pod has no controller."""
        return self.workload == f"{self.pod} (Pod)"

    def to_dict(self) -> dict[str, Any]:
        """Return the effect as plain values."""
        fields = {
            "pod": self.pod, "workload": self.workload, "effect": str(self.effect), "node": self.node,
            "runs": self.runs, "before": self.before, "after": self.after,
            "ties": self.ties if self.ties > 1 else 0, "by": self.by, "reason": self.reason,
        }  # fmt: skip
        return {key: value for key, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class WorkloadEffect:
    """The effect of a change on the pods of one workload, for one cause."""

    workload: str
    effect: Effect
    pods: int
    examples: tuple[PodEffect, ...]
    by: str = ""
    """Reason of the effect; empty if other pods used or freed the resources."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A resource of a node: the amount that pods would request, and the smaller allocatable amount, as quantities."""

    resource: str
    asked: str
    allocatable: str

    @property
    def text(self) -> str:
        """The excess as text: rounded, unless both amounts would look equal."""
        scale = -3 if self.resource == "cpu" else 0
        both = [rounded(self.resource, parse(one).scaled(scale)) for one in (self.asked, self.allocatable)]
        asked, allocatable = both if both[0] != both[1] else (self.asked, self.allocatable)
        return f"{asked} of {allocatable} {self.resource}"


@dataclass(frozen=True, slots=True)
class NodeEffect:
    """For one node: the numbers of pods that get it only without and only with the change, each evaluated alone."""

    node: str
    loses: int
    gains: int
    over: tuple[Excess, ...] = ()
    """Resources that the node would lack if all pods that get this node, each evaluated alone, got it together."""


@dataclass(frozen=True, slots=True)
class PolicyPods:
    """The number of pods for which a changed policy is evaluated."""

    policy: str
    pods: int


@dataclass(frozen=True, slots=True)
class GroupFits:
    """Whether the pending pods of a pod group fit together without and with a change."""

    group: str
    before: str
    """Reason why the group does not fit without the change; empty if the group fits."""
    after: str
    """Reason why the group does not fit with the change; empty if the group fits."""

    def to_dict(self) -> dict[str, Any]:
        """Return the pod group's results as plain values, without empty reasons."""
        fields = {"group": self.group, "fitsBefore": not self.before, "fitsAfter": not self.after}
        return fields | ({"reason": self.after or self.before} if self.before or self.after else {})


@dataclass(frozen=True, slots=True)
class UnplacedPods:
    """The pods that fit no node, without and with a change; members of pending pod groups are not included."""

    pods: int = 0
    decided: int = 0
    """Number of pods that were scheduled on both sides, because the change can affect them."""
    reasons: tuple[tuple[str, int], ...] = ()
    """The most common reasons without the change, each with its number of pods."""

    @property
    def text(self) -> str:
        """The number and the reasons in one line."""
        fit = f"{self.pods:,} of the {counted(self.decided, 'pod')} that the change can affect"
        reasons = "; ".join(f"{pods:,} × {why}" if pods < self.pods else why for why, pods in self.reasons)
        return f"{fit} {'fits' if self.pods == 1 else 'fit'} no node, without and with the change: {reasons}"

    def to_dict(self) -> dict[str, Any]:
        """Return the pods as plain values."""
        reasons = [{"reason": why, "pods": pods} for why, pods in self.reasons]
        return {"pods": self.pods, "decidedPods": self.decided, "reasons": reasons}


@dataclass(frozen=True, slots=True)
class DaemonPods:
    """Numbers of DaemonSets' pods that are created on new nodes, and that are deleted together with their nodes."""

    created: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The predicted effect of a change on the pods of a cluster, by pod, workload and node."""

    pods: int
    """Number of pods that were evaluated on both sides."""
    effects: tuple[PodEffect, ...]
    idle_policies: tuple[str, ...] = ()
    """Policies that reject no node and prefer no node for any pod, with reasons."""
    others: int = 0
    """Number of pods that are not evaluated: of other schedulers, finished, or static."""
    gated: int = 0
    stranded: int = 0
    """Number of pods that are not evaluated, because their nodes are not in the cluster."""
    left_out: tuple[str, ...] = ()
    """Objects that cannot be read and are left out on both sides, with reasons."""
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    unseen: int = 0
    """Number of pods not evaluated because of an interruption; 0 if none, or if unknown."""
    over: Mapping[str, tuple[Excess, ...]] = field(default_factory=dict)
    """Resources that each node would lack if all pods were placed together on the nodes that each pod gets alone."""
    policies: tuple[PolicyPods, ...] = ()
    """The enforced policies that the change adds, replaces or deletes."""
    daemons: DaemonPods = DaemonPods()
    groups: tuple[GroupFits, ...] = ()
    """The pod groups with pending pods that were decided on both sides."""
    unplaced: UnplacedPods = UnplacedPods()
    failed: int = 0
    """Number of pods whose decision failed, because a plugin raised an error."""

    @property
    def changes(self) -> bool:
        """Whether the change has any effect."""
        return bool(self.effects)

    @property
    def counts(self) -> Counter[Effect]:
        """Number of pods by effect."""
        return Counter(one.effect for one in self.effects)

    @property
    def running(self) -> int:
        """Number of affected pods that run and keep running on their nodes."""
        return sum(one.runs for one in self.effects)

    @property
    def summary(self) -> str:
        """The plan in one sentence."""
        total = f"{self.pods:,} {'pod' if self.pods == 1 else 'pods'}"
        text = self._effects_in(total) if self.effects else f"no changes for {total}"
        if self.interrupted:
            text += "; interrupted" + (f": {self.unseen:,} pods not evaluated" if self.unseen else "")
        return text

    def _effects_in(self, total: str) -> str:
        counts = self.counts
        parts: list[str] = []
        before = ""
        for effect in [one for one in Effect if counts[one]]:
            words = effect.of(counts[effect])
            short = words.removeprefix(_GET) if before.startswith(_GET) else words
            first = f" of {total}" if not parts else ""
            workloads = self._workloads_without_node() if effect is Effect.UNSCHEDULABLE else ""
            parts.append(f"{counts[effect]:,}{first} {short}{workloads}")
            before = words
        text = ", ".join(parts) + (" if recreated" if self.running else "")
        lost = sum(one.effect is Effect.ADDED and not one.after for one in self.effects)
        text += f"; {lost:,} of the added pods would get no node" if lost else ""
        newer = sum(one.by.startswith(NEW_NODE_SCORE) for one in self.effects)
        return text + (f"; {newer:,} only because a new node scores higher" if newer else "")

    def _workloads_without_node(self) -> str:
        """Return the workloads with pods that would have no node, in parentheses."""
        pods: Counter[str] = Counter()
        for one in self.workloads:
            pods.update({one.workload: one.pods} if one.effect is Effect.UNSCHEDULABLE else {})
        largest = pods.most_common(EXAMPLES)
        counted = len(pods) > 1
        names = [f"{one:,} of " * (counted and one > 1) + _kind_first(name) for name, one in largest]
        return f" ({', '.join(names)}{' …' if len(pods) > EXAMPLES else ''})"

    @property
    def workloads(self) -> Sequence[WorkloadEffect]:
        """Effects by workload and cause, the most severe and largest first.

        Pods without a workload are grouped if many.
        """
        alone = Counter((one.effect, one.namespace) for one in self.effects if one.is_alone)
        found: dict[tuple[Effect, str, str], list[PodEffect]] = {}
        for one in self.effects:
            many = one.is_alone and alone[one.effect, one.namespace] > EXAMPLES
            name = f"{one.namespace}/* (Pod)" if many else one.workload
            found.setdefault((one.effect, name, one.by), []).append(one)
        order = list(Effect)
        ranked = sorted(found.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]), item[0][1:]))
        return [
            WorkloadEffect(name, effect, len(pods), tuple(pods[:EXAMPLES]), by) for (effect, name, by), pods in ranked
        ]

    @property
    def nodes(self) -> Sequence[NodeEffect]:
        """Nodes that get fewer or more pods with the change, the largest difference first."""
        loses: Counter[str] = Counter(one.before for one in self.effects if one.before)
        gains: Counter[str] = Counter(one.after for one in self.effects if one.after)
        found = [NodeEffect(name, loses[name], gains[name], self.over.get(name, ())) for name in {*loses, *gains}]
        return sorted(found, key=lambda one: (-abs(one.gains - one.loses), -one.gains - one.loses, one.node))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "summary": self.summary,
            "changes": self.changes,
            "pods": self.pods,
            "counts": {str(effect): self.counts[effect] for effect in Effect if self.counts[effect]},
            "runningPods": self.running,
            "workloads": [
                {"workload": one.workload, "effect": str(one.effect), "pods": one.pods}
                | ({"by": one.by} if one.by else {})
                for one in self.workloads
            ],
            "nodes": [_node_dict(one) for one in self.nodes],
            "effects": [one.to_dict() for one in self.effects],
            "policies": [{"policy": one.policy, "pods": one.pods} for one in self.policies],
            "unplacedPods": self.unplaced.to_dict(),
            "podGroups": [one.to_dict() for one in self.groups],
            "daemonPods": {"created": self.daemons.created, "deleted": self.daemons.deleted},
            "idlePolicies": list(self.idle_policies),
            "otherPods": self.others,
            "gatedPods": self.gated,
            "strandedPods": self.stranded,
            "leftOut": list(self.left_out),
            "notes": list(self.notes),
            "interrupted": self.interrupted,
            "unseenPods": self.unseen,
        }


def _node_dict(one: NodeEffect) -> dict[str, Any]:
    fields: dict[str, Any] = {"node": one.node, "loses": one.loses, "gains": one.gains}
    if one.over:
        fields["over"] = {
            excess.resource: {"asked": excess.asked, "allocatable": excess.allocatable} for excess in one.over
        }
    return fields
