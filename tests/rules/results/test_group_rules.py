"""Rules about pod groups say, after any changes, what the reference interpreter says of plain objects."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.language import interpret
from policysched.language.ir.graph import Input
from policysched.model.objects import Node, Pod, PodGroup
from policysched.model.requests import incoming_requests
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.state.what_if import ChangedRow
from tests.build import node
from tests.groups import GATED, group, member
from tests.rules.build import compiled, filtering
from tests.schedule.parts import profile

CONDITIONS = (
    "node.group_members < 2",
    '(sum(node.group_members) by node.labels["rack"]) == group.placed',
    "(group.placed < group.min_count) ?? false",
    "group.size > 3 and node.group_members == 0",
    'group.labels["tier"] == node.labels["tier"]',
    'group.labels[group.name] == "yes" or node.name == "n0"',
    'sum(node.free.cpu) by node.labels["rack"] >= group.requests.cpu',
    'group.requests["cpu"] > 2 or node.group_members > 0',
    "group.requests.pods <= node.free.pods - 107",
    "count(node.group_members > 0) < 3",
    'node.pods.count(peer.labels["g"] == group.name) < 2',
    "node.pods.count(peer.priority < group.placed) < 2",
    "sum(if(group.placed > 1, node.group_members, 1)) > 2",
    "max(node.group_members) - min(node.group_members) <= 1",
)
NODES = [node(f"n{place}", labels={"rack": f"r{place % 3}", "tier": "ab"[place % 2]}) for place in range(7)]
NAMES = ("g0", "g1", "g2")


class Plain:
    """Nodes, groups, waiting pods and placed pods as plain objects, beside the cluster that gets the same changes."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster(release=GATED)
        self.groups: dict[str, PodGroup] = {}
        self.waiting: dict[str, Pod] = {}
        self.placed: dict[str, tuple[Pod, str]] = {}
        for one in NODES:
            self.cluster.set_node(one)
        self.made = 0

    def step(self) -> None:
        self.rng.choice(
            (self.arrive, self.arrive, self.place, self.place, self.forget, self.leave, self.alter, self.edit)
        )()

    def arrive(self) -> None:
        name, self.made = self.rng.choice(NAMES), self.made + 1
        one = member(
            f"p{self.made}", name, labels={"g": name}, requests={"cpu": self.rng.choice((1, "500m"))}, priority=1
        )
        self.waiting[one.metadata.name] = one
        assert self.cluster.pod_groups is not None
        self.cluster.pod_groups.await_pod(one)

    def place(self) -> None:
        if self.waiting:
            one = self.waiting.pop(self.rng.choice(sorted(self.waiting)))
            on = self.rng.choice(NODES).metadata.name
            self.placed[one.metadata.name] = (one, on)
            if self.rng.random() < 0.5:
                self.cluster.assume(one, self.cluster.nodes.row_of[on])
            else:
                self.cluster.set_pod(replace(one, spec=replace(one.spec, node_name=on)))

    def forget(self) -> None:
        assumed = [name for name in sorted(self.placed) if self.cluster.is_assumed(f"default.{name}")]
        if assumed:
            name = self.rng.choice(assumed)
            self.cluster.forget(f"default.{name}")
            self.waiting[name] = self.placed.pop(name)[0]

    def leave(self) -> None:
        names = sorted({**self.placed, **self.waiting})
        if len(names) > 9:
            name = self.rng.choice(names)
            self.cluster.remove_pod(f"default.{name}")
            self.placed.pop(name, None)
            self.waiting.pop(name, None)

    def alter(self) -> None:
        """Change the requests of a waiting pod."""
        if self.waiting:
            name = self.rng.choice(sorted(self.waiting))
            old = self.waiting[name]
            one = self.waiting[name] = member(
                name,
                old.metadata.labels["g"],
                labels=old.metadata.labels,
                requests={"cpu": self.rng.randrange(1, 4)},
                priority=1,
            )
            assert self.cluster.pod_groups is not None
            self.cluster.pod_groups.await_pod(one)

    def edit(self) -> None:
        """Create, change or delete a PodGroup."""
        name = self.rng.choice(NAMES)
        if name in self.groups and self.rng.random() < 0.3:
            self.cluster.drop(self.groups.pop(name))
            return
        made = group(name, self.rng.choice((None, 2, 4)))
        labels = {"tier": self.rng.choice("ab"), name: self.rng.choice(("yes", "no"))}
        made = self.groups[name] = type(made)(metadata=replace(made.metadata, labels=labels), spec=made.spec)
        self.cluster.take(made)


class View:
    """A node for the reference interpreter."""

    now = 0.0

    def __init__(self, plain: Plain, of: Pod, one: Node, views: Sequence[View], peer: Pod | None = None) -> None:
        self.plain, self.of, self.one, self.peer = plain, of, one, peer
        self.nodes: Any = views
        self.feasible = self.placement = self.nodes

    @property
    def here(self) -> list[Pod]:
        return [held for held, on in self.plain.placed.values() if on == self.one.metadata.name]

    @property
    def pods(self) -> Any:
        return [View(self.plain, self.of, self.one, self.nodes, held) for held in self.here]

    def value(self, item: Input) -> Any:
        read = {"group": self._of_group, "peer": self._of_peer, "node": self._of_node}
        return read[item.root](item)

    def _of_peer(self, item: Input) -> Any:
        assert self.peer is not None
        return (
            self.peer.metadata.labels.get(item.key or "")
            if item.path == ("labels",)
            else float(self.peer.spec.priority or 0)
        )

    def _of_node(self, item: Input) -> Any:
        name = self.of.spec.scheduling_group.pod_group_name if self.of.spec.scheduling_group else ""
        match item.path:
            case ("name",):
                return self.one.metadata.name
            case ("labels",):
                return self.one.metadata.labels.get(item.key or "")
            case ("group_members",):
                return float(sum(1 for held in self.here if name and held.metadata.labels["g"] == name))
            case ("free", "cpu"):
                return 4000.0 - sum(incoming_requests(held).cpu_millis for held in self.here)
            case _:
                return 110.0 - len(self.here)

    def _of_group(self, item: Input) -> Any:
        plain, named = self.plain, self.of.spec.scheduling_group
        name = "" if named is None else named.pod_group_name or ""
        waiting = [one for one in plain.waiting.values() if name and one.metadata.labels["g"] == name]
        placed = [one for one, _ in plain.placed.values() if name and one.metadata.labels["g"] == name]
        made = plain.groups.get(name)
        gang = None if made is None else made.spec.scheduling_policy.gang
        values = {
            "name": name if made or waiting or placed else None,
            "labels": None if made is None else made.metadata.labels.get(item.key or ""),
            "min_count": None if gang is None else float(gang.min_count),
            "size": float(len(waiting) + len(placed)),
            "placed": float(len(placed)),
            "pods": float(len(waiting)),
            "cpu": float(sum(incoming_requests(one).cpu_millis for one in waiting)),
        }
        return values[item.path[-1]]


def said(plain: Plain, of: Pod, policy: CompiledPolicy) -> dict[str, bool]:
    """Which nodes the policy's rule accepts, by the interpreter."""
    views: list[View] = []
    views += [View(plain, of, one, views) for one in NODES]
    return {view.one.metadata.name: interpret(policy.filters[0].require, view) is True for view in views}


def engines(policies: Sequence[CompiledPolicy], cluster: Cluster) -> list[Engine]:
    """An engine for each policy."""
    made = (PolicySet.of([one]).join(profile()) for one in policies)
    return [Engine(cluster, one, random.Random(0)) for one in made]


def accepted(engine: Engine, of: Pod) -> dict[str, bool]:
    feasible = engine.find(of).feasible()
    return {name: bool(feasible[row]) for name, row in engine.cluster.nodes.row_of.items()}


@pytest.mark.parametrize("seed", range(3))
def test_rules_about_groups_follow_every_change(seed: int) -> None:
    plain = Plain(seed)
    made = [compiled(f"p{place}", filters=filtering(text)) for place, text in enumerate(CONDITIONS)]
    deciding = engines(made, plain.cluster)
    for _ in range(150):
        plain.step()
        waiting = sorted(plain.waiting)
        wanted = [plain.waiting[name] for name in plain.rng.sample(waiting, min(2, len(waiting)))]
        for of in (*wanted, member("alone", "")):
            for policy, engine in zip(made, deciding, strict=True):
                assert accepted(engine, of) == said(plain, of, policy), policy.filters[0].require.text


@pytest.mark.parametrize("seed", range(3))
def test_what_ifs_with_members_of_the_group_are_what_a_placement_would_be(seed: int) -> None:
    plain = Plain(seed)
    made = [compiled(f"p{place}", filters=filtering(text)) for place, text in enumerate(CONDITIONS)]
    for _ in range(60):
        plain.step()
        if len(plain.waiting) < 2:
            continue
        of, added = (plain.waiting[name] for name in plain.rng.sample(sorted(plain.waiting), 2))
        for policy in made:
            row = plain.rng.randrange(len(NODES))
            matrix = PolicySet.of([policy]).active[0].filter_matrix(of, plain.cluster)
            changed = ChangedRow(plain.cluster, row)
            changed.add(added)
            assert not isinstance(matrix, type(None))
            told = matrix.changed_code(changed) == 0  # type: ignore[union-attr]
            plain.cluster.assume(added, row)
            assert told is accepted(engines([policy], plain.cluster)[0], of)[NODES[row].metadata.name]
            plain.cluster.forget(f"default.{added.metadata.name}")
