"""What a policy says of many rows with other pods on them equals what it says of each of them."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import SKIP, ChangedRow, ChangedRows, Cluster, RowVerdicts, Status
from policysched.model.objects import Pod
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.search import search_victims
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle
from tests.build import cluster, node, pod
from tests.rules.build import filtering, plugin, policy_set
from tests.work import calls

WORLDS = 25
TOGETHER = (
    "node.free.cpu >= 2",
    "node.requested.cpu < 3 and node.requested.pods < 3",
    'node.free["example.com/gpu"] > 1',
    "node.free.memory > pod.requests.memory",
    'node.pods.count(peer.labels["app"] == pod.labels["app"]) < 2',
    "node.pods.sum(peer.requests.cpu, peer.priority < 5) < 2",
    'sum(node.requested.cpu) by node.zone < 4 or node.name == "n1"',
    'sum(node.pods.count(peer.labels["app"] == "a")) by node.zone < 3',
    "avg(node.requested.pods) by node.zone < 2",
    "count(node.free.cpu > 1) by node.zone > 1",
    "cluster.pods < 6",
    "cluster.pods / cluster.nodes > 1 and node.free.cpu >= 2",
    'if(cluster.pods > 5, node.name, node.zone) != "n1"',
    'if(cluster.pods > 5, "n1", "n2") != node.name',
    "sum(node.requested.cpu) < 5",
    "avg(node.requested.pods) > 1.5",
    "count(node.free.cpu > 1) > 1",
    "max(node.requested.cpu) < 3",
    "max(node.requested.cpu) by node.zone < 2",
    "min(node.free.cpu) by node.zone > 1",
    "min(4 / node.requested.pods) by node.zone < 3",
    "max(node.requested.cpu) - min(node.requested.cpu) < 2",
    "sum(node.requested.cpu / 3) < 2",
    "sum(node.requested.cpu / 3) by node.zone < 1",
    "avg(node.requested.pods / 7) by node.zone < 0.3",
    "avg(4 / node.requested.pods) < 2",
    "sum(node.requested.cpu / 2) by node.zone < 1",
    'node.zone == "x"',
    'node.zone != "y" or node.requested.cpu < 1',
)
ONE_BY_ONE = (
    "sum(if(node.requested.pods > 1, 1 / 3, 1 / 3k / 1M / 1M / 1M / 1M)) < 5",
    "sum(node.requested.cpu * cluster.pods) < 5",
    '(node.labels[if(cluster.pods > 4, "a", "b")] ?? "x") == "x"',
    'node.pods.any(peer.name == "p1" and peer.labels["app"] == "a")',
)


def some_pod(chance: Random, name: str, on: str = "") -> Pod:
    requests = {"cpu": chance.choice((1, 2)), "memory": chance.choice((0, 1)), "example.com/gpu": chance.choice((0, 1))}
    return pod(name, on=on, labels={"app": chance.choice("ab")}, requests=requests, priority=chance.choice((0, 9)))


def some_cluster(chance: Random, pods: int) -> Cluster:
    have = {"cpu": 4, "memory": 2, "example.com/gpu": 3}
    zones = [chance.choice(("x", "y", None)) for _ in range(4)]
    labels = [{} if zone is None else {"topology.kubernetes.io/zone": zone} for zone in zones]
    nodes = [node(f"n{index}", allocatable=have, labels=one) for index, one in enumerate(labels)]
    return cluster(*nodes, *(some_pod(chance, f"p{index}", f"n{chance.randrange(4)}") for index in range(pods)))


class Asked:
    """Some rows of a cluster, and pods that go from them and come to them."""

    def __init__(self, around: Cluster, rows: list[int], coming: dict[int, list[Pod]]) -> None:
        self.around, self.rows, self.coming = around, rows, coming
        self.there = [one for one in around.pods.by_slot if one is not None and one.row in rows]
        slots, of = [one.slot for one in self.there], np.searchsorted(rows, [one.row for one in self.there])
        self.plain = ChangedRows(around, np.array(rows, np.intp), np.array(slots, np.intp), of)
        self.beside = self.plain.with_nominated(coming)
        self._gone: set[int] = set()

    def move(self, pods: list[int]) -> None:
        """Take pods away, and bring those back that were taken away."""
        for moved in pods:
            (self.plain.restore if moved in self._gone else self.plain.remove)(np.array([moved]))
            self._gone ^= {moved}

    def each(self, policy: Any, state: Any, coming: dict[int, list[Pod]]) -> list[Status | None]:
        """Ask about one row after the other."""
        found = []
        for row in self.rows:
            changed = ChangedRow(self.around, row)
            for place in sorted(self._gone):
                if self.there[place].row == row:
                    changed.remove(self.there[place].pod)
            for one in coming.get(row, ()):
                changed.add(one)
            found.append(policy.filter_changed(state, changed))
        return found


@pytest.mark.parametrize("rules", [*((one,) for one in TOGETHER), TOGETHER], ids=" & ".join)
def test_codes_of_many_changed_rows_are_those_of_each(rules: tuple[str, ...]) -> None:
    chance, told = Random(20261122), Counter[bool]()
    policy = plugin(filters=[rule for place, text in enumerate(rules) for rule in filtering(text, f"r{place}")])
    for number in range(WORLDS):
        around = some_cluster(chance, chance.randint(2, 9))
        state: Any = policy.prepare_filter(some_pod(chance, f"waiting{number}"), around)
        assert state is not SKIP
        rows = sorted(chance.sample(range(4), chance.randint(1, 4)))
        coming = {row: [some_pod(chance, f"new{row}")] for row in rows if chance.random() < 0.5}
        asked = Asked(around, rows, coming)
        for _ in range(4):
            asked.move(chance.sample(range(len(asked.there)), chance.randint(0, len(asked.there))))
            for many, come in ((asked.plain, {}), (asked.beside, coming)):
                codes = policy.filter_changed_rows(state, many)
                assert codes is not None
                said = [policy.reason(state, code) if code else None for code in codes.tolist()]
                assert said == asked.each(policy, state, come)
                told.update(one is None for one in said)
    assert min(told[True], told[False]) > 10 or len(rules) > 1, told


@pytest.mark.parametrize("rule", ONE_BY_ONE)
def test_rule_that_one_row_does_not_tell_is_asked_row_by_row(rule: str) -> None:
    policy, around = plugin(filters=filtering(rule)), some_cluster(Random(1), 5)
    state: Any = policy.prepare_filter(some_pod(Random(2), "waiting"), around)
    assert policy.filter_changed_rows(state, Asked(around, [0, 1], {}).plain) is None


def test_rules_cost_an_operation_and_not_each_row() -> None:
    def work(nodes: int) -> int:
        around = cluster(*(node(f"n{index}") for index in range(nodes)))
        policy = plugin(filters=filtering("node.free.cpu > 1 or node.requested.pods < 5"))
        state: Any = policy.prepare_filter(pod("waiting"), around)
        changed = ChangedRows(around, np.arange(nodes), np.zeros(0, np.intp), np.zeros(0, np.intp))
        policy.filter_changed_rows(state, changed)
        return calls(lambda: policy.filter_changed_rows(state, changed))

    assert work(400) < 2 * work(100)


def test_victims_are_found_where_sums_can_be_told_with_some_pods_only() -> None:
    """What the node adds with one pod is too small to be summed up together with what it adds now."""
    have = node("n1", allocatable={"cpu": 4}, labels={"topology.kubernetes.io/zone": "x"})
    small = {"cpu": "1m"}
    around = cluster(
        have, *(pod(name, on="n1", requests=small) for name in "ab"), pod("c", on="n1", requests={"cpu": 3})
    )
    rule = "sum(if(node.requested.pods == 1, 1 / 3 / 1G / 1G / 1G, 1)) by node.zone < 2"
    profile = policy_set(p={"filters": filtering(rule)}).join(default_profile())
    decision = Engine(around, profile, Random(1)).decide(pod("high", requests={"cpu": 3}, priority=9))
    failed = FailedCycle(decision, Random(1))
    together = failed.verdicts
    answers: list[bool] = []

    def noted(changed: ChangedRows) -> RowVerdicts | None:
        said = together(changed)
        answers.append(said is not None)
        return said

    failed.verdicts = noted  # type: ignore[method-assign]
    found = search_victims(failed, np.zeros(1, np.intp), Budgets(around), 1)
    assert (answers[0], answers[-1]) == (True, False)
    away = [around.pods.by_slot[slot] for slot in found.slots[found.victims].tolist()]
    assert [one and one.pod.metadata.name for one in away] == ["c"]
