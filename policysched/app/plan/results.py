"""`Plan`, what `policysched plan` finds out, as values for programs; `to_dict` is what `-o json` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

EXAMPLES: Final = 3


class Effect(StrEnum):
    """What a change would do to a pod."""

    UNSCHEDULABLE = "unschedulable"
    """It has a node or would get one, and would get none."""
    SCHEDULABLE = "schedulable"
    """It would get a node, and gets none today."""
    MOVES = "moves"
    """It would land on another node."""
    PREEMPTED = "preempted"
    """It would have to make room for a pending pod, and does not today."""
    SPARED = "spared"
    """It has to make room for a pending pod today, and would not."""
    ADDED = "added"
    """It is one of more replicas."""
    REMOVED = "removed"
    """It is one of fewer replicas, or it is not decided about any more."""


_SAID: Final = {
    Effect.UNSCHEDULABLE: "become unschedulable",
    Effect.SCHEDULABLE: "become schedulable",
    Effect.MOVES: "move",
    Effect.PREEMPTED: "would be preempted",
    Effect.SPARED: "would not be preempted any more",
    Effect.ADDED: "are added",
    Effect.REMOVED: "are removed",
}


@dataclass(frozen=True, slots=True)
class PodEffect:
    """What a change would do to one pod."""

    pod: str
    workload: str
    effect: Effect
    before: str
    """Its node without the change; empty where it gets none."""
    after: str
    """Its node with the change."""
    ties: int = 1
    """How many nodes are as good for it as that one."""
    reason: str = ""
    """Why it gets none."""

    @property
    def namespace(self) -> str:
        """The pod's."""
        return self.pod.partition("/")[0]

    @property
    def is_alone(self) -> bool:
        """Whether nothing controls the pod."""
        return self.workload == f"{self.pod} (Pod)"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        told = {
            "pod": self.pod, "workload": self.workload, "effect": str(self.effect), "before": self.before,
            "after": self.after, "ties": self.ties if self.ties > 1 else 0, "reason": self.reason,
        }  # fmt: skip
        return {key: value for key, value in told.items() if value}


@dataclass(frozen=True, slots=True)
class WorkloadEffect:
    """What a change would do to the pods of one workload."""

    workload: str
    effect: Effect
    pods: int
    examples: tuple[PodEffect, ...]


@dataclass(frozen=True, slots=True)
class NodeEffect:
    """How many pods a node would lose and gain."""

    node: str
    loses: int
    gains: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a change would do."""

    pods: int
    """How many pods were decided about on both sides."""
    effects: tuple[PodEffect, ...]
    idle_policies: tuple[str, ...] = ()
    """The policies that would keep no pod off any node and prefer no node to another, each with the reason."""
    others: int = 0
    """How many pods are not decided about: other schedulers', finished ones, those of nodes themselves."""
    gated: int = 0
    left_out: tuple[str, ...] = ()
    """The objects that cannot be read, each with what is wrong: they are on neither side."""
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    unseen: int = 0
    """How many pods were not looked at because it was interrupted, where that is known."""

    @property
    def changes(self) -> bool:
        """Whether anything would change."""
        return bool(self.effects)

    @property
    def counts(self) -> Counter[Effect]:
        """How many pods there are of each effect."""
        return Counter(one.effect for one in self.effects)

    @property
    def summary(self) -> str:
        """All of it in one sentence."""
        total = f"{self.pods:,} {'pod' if self.pods == 1 else 'pods'}"
        if not self.effects:
            text = f"nothing would change for {total}"
        else:
            parts = [f"{self.counts[effect]:,} {_SAID[effect]}" for effect in Effect if self.counts[effect]]
            lost = sum(one.effect is Effect.ADDED and not one.after for one in self.effects)
            parts += [f"{lost:,} of those added get no node"] if lost else []
            text = f"of {total} " + ", ".join(parts)
            hurt = [one for one in self.workloads if one.effect is Effect.UNSCHEDULABLE]
            if hurt:
                text += f": {', '.join(f'{one.workload} ({one.pods:,})' for one in hurt[:EXAMPLES])}"
                text += " …" if len(hurt) > EXAMPLES else ""
        if self.interrupted:
            text += "; interrupted" + (f", {self.unseen:,} pods were not looked at" if self.unseen else "")
        return text

    @property
    def workloads(self) -> Sequence[WorkloadEffect]:
        """The effects by workload, the gravest and largest first; many pods without one are told together."""
        alone = Counter((one.effect, one.namespace) for one in self.effects if one.is_alone)
        found: dict[tuple[Effect, str], list[PodEffect]] = {}
        for one in self.effects:
            many = one.is_alone and alone[one.effect, one.namespace] > EXAMPLES
            name = f"{one.namespace}/* (Pod)" if many else one.workload
            found.setdefault((one.effect, name), []).append(one)
        order = list(Effect)
        ranked = sorted(found.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]), item[0][1]))
        return [WorkloadEffect(name, effect, len(pods), tuple(pods[:EXAMPLES])) for (effect, name), pods in ranked]

    @property
    def nodes(self) -> Sequence[NodeEffect]:
        """The nodes that would lose or gain pods, the largest difference first."""
        loses: Counter[str] = Counter(one.before for one in self.effects if one.before)
        gains: Counter[str] = Counter(one.after for one in self.effects if one.after)
        found = [NodeEffect(name, loses[name], gains[name]) for name in {*loses, *gains}]
        return sorted(found, key=lambda one: (-abs(one.gains - one.loses), -one.gains - one.loses, one.node))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "summary": self.summary,
            "changes": self.changes,
            "pods": self.pods,
            "counts": {str(effect): self.counts[effect] for effect in Effect if self.counts[effect]},
            "workloads": [
                {"workload": one.workload, "effect": str(one.effect), "pods": one.pods} for one in self.workloads
            ],
            "nodes": [{"node": one.node, "loses": one.loses, "gains": one.gains} for one in self.nodes],
            "effects": [one.to_dict() for one in self.effects],
            "idlePolicies": list(self.idle_policies),
            "otherPods": self.others,
            "gatedPods": self.gated,
            "leftOut": list(self.left_out),
            "notes": list(self.notes),
            "interrupted": self.interrupted,
            "unseenPods": self.unseen,
        }
