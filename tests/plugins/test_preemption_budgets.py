"""Disruption budgets in preemption: which pods they protect, and how often their selectors are asked."""

from __future__ import annotations

import random
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster, Mask, PostFilterResult
from policysched.model.objects import (
    LabelSelector,
    Metadata,
    Pod,
    PodDisruptionBudget,
    Requirement,
)
from policysched.model.selection.indexed_selector import IndexedSelector
from policysched.model.selection.selectors import compile_selector
from policysched.plugins.default_preemption import budgets as budgets_module
from policysched.plugins.default_preemption.budgets import BudgetRules, Budgets, LabelSets
from policysched.plugins.default_preemption.plugin import DefaultPreemption
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle
from policysched.state import object_selectors
from tests.build import node, pod
from tests.plugins.inter_pod_affinity.build import label
from tests.plugins.preempting import LABELS, WEB, budget, chosen, low, preempt, wanted, world
from tests.work import lines


def test_node_with_the_fewest_violations_is_chosen_first() -> None:
    around = world(node("a"), node("b"), low("one", "a", labels=LABELS), low("two", "b", 9), budgets=[budget("x", WEB)])
    assert chosen(around, wanted()) == ("b", ["two"])


def test_pod_that_a_budget_protects_stays_where_another_can_go() -> None:
    pods = [low("kept", "a", 1, cpu=2, labels=LABELS), low("gone", "a", 5, cpu=2)]
    assert chosen(world(node("a"), *pods, budgets=[budget("x", WEB)]), wanted(2)) == ("a", ["gone"])
    assert chosen(world(node("a"), *pods, budgets=[budget("x", WEB, 1)]), wanted(2)) == ("a", ["kept"])


@pytest.mark.parametrize(
    "given",
    [
        budget("x", None),
        budget("x", LabelSelector()),
        budget("x", label("app", "web", operator="Near")),
        budget("x", WEB, 0, {"kept": None}),
        replace(budget("x", WEB), metadata=Metadata(name="x", namespace="other")),
    ],
    ids=["no selector", "empty selector", "invalid selector", "counted already", "another namespace"],
)
def test_budget_that_says_nothing_of_a_pod_protects_it_not(given: PodDisruptionBudget) -> None:
    pods = [low("kept", "a", 1, cpu=2, labels=LABELS), low("gone", "a", 5, cpu=2)]
    assert chosen(world(node("a"), *pods, budgets=[given]), wanted(2)) == ("a", ["kept"])


@pytest.mark.parametrize("labels", [LABELS, {}])
def test_empty_selector_protects_all_pods_of_the_namespace_from_1_38_on(labels: dict[str, str]) -> None:
    pods = [low("kept", "a", 1, cpu=2, labels=labels), low("gone", "a", 5, cpu=2)]
    spoken = replace(budget("x", LabelSelector()), metadata=Metadata(name="x", namespace="default"))
    around = world(node("a"), *pods, budgets=[spoken])
    assert victims_under(BudgetRules(), around) == ["kept"]
    pods[1] = replace(pods[1], metadata=replace(pods[1].metadata, namespace="other"))
    around = world(node("a"), *pods, budgets=[spoken])
    assert victims_under(BudgetRules(empty_selects_all=True), around) == ["gone"]


def test_pod_that_violates_a_budget_uses_up_no_other_from_1_37_on() -> None:
    placed = [
        low("first", "a", 5, cpu=1, labels=LABELS | {"tier": "x"}),
        low("second", "a", 4, cpu=1, labels=LABELS),
        low("third", "a", 9, cpu=1),
    ]
    around = world(node("a"), *placed, budgets=[budget("strict", label("tier", "x")), budget("x", WEB, 1)])
    assert victims_under(BudgetRules(), around) == ["third"]
    assert victims_under(BudgetRules(stops_at_violation=True), around) == ["second"]


def victims_under(rules: BudgetRules, around: Cluster) -> list[str]:
    failed = FailedCycle(Engine(around, default_profile(), random.Random(0)).decide(wanted(2)), random.Random(0))
    return [one.metadata.name for one in DefaultPreemption(rules=rules).post_filter(failed.pod, failed).victims]


def test_budget_of_every_labelled_pod_keeps_none_from_going_where_all_have_to() -> None:
    around = world(node("a"), low("one", "a", labels=LABELS), budgets=[budget("x", label("app"))])
    result = preempt(around, wanted())
    assert result.nominated_node == "a"
    assert result.details.describe()["victims"] == {"default/one": {"priority": 0, "budgets": ["x"], "violates": True}}


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ((0, 1), [True, True, True]),
        ((1, 9), [False, True, True]),
        ((9, 2), [False, False, True]),
        ((9, 9), [False] * 3),
    ],
)
def test_every_budget_counts_a_pod_also_where_another_one_is_spent(
    allowed: tuple[int, int], expected: list[bool]
) -> None:
    pods = [low(f"{on}{number}", on, cpu=1, labels=LABELS) for number in range(3) for on in "ab"]
    given = [budget(str(number), WEB, one) for number, one in enumerate(allowed)]
    around = world(node("a"), node("b"), *pods, budgets=given)
    slots = [around.pods.by_id[f"default.{on}{number}"].slot for on in "ab" for number in range(3)]
    assert (
        Budgets(around).violating(around, np.array(slots), around.pods.rows[slots].astype(np.intp)).tolist()
        == expected * 2
    )


def test_budget_is_compiled_once_as_long_as_it_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compiling = budgets_module._selection

    def noted(one: PodDisruptionBudget, *rest: Any) -> Any:
        compiled.append(one.metadata.name)
        return compiling(one, *rest)

    monkeypatch.setattr(budgets_module, "_selection", noted)
    around = world(node("a"), budgets=[budget("x", WEB), budget("y", WEB), budget("z", WEB)])
    first = Budgets(around)
    around.take(budget("y", WEB, 5))
    around.take(budget("z", label("app", "db"), 5))
    around.drop(budget("x", WEB))
    second = Budgets(around, first)
    assert compiled == ["x", "y", "z", "z"]
    assert [one.allowed for one in second.of(low("one", "a", labels=LABELS))] == [5]


class Counting:
    """Counts how often it is worked out what a budget selects."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        asking = LabelSets.selected

        def selected(sets: LabelSets, selector: IndexedSelector) -> Mask:
            self.asked += 1
            return asking(sets, selector)

        monkeypatch.setattr(LabelSets, "selected", selected)

    def during(self, plugin: DefaultPreemption, around: Cluster, of: Pod) -> int:
        before = self.asked
        decision = Engine(around, default_profile(), random.Random(0)).decide(of)
        plugin.post_filter(of, FailedCycle(decision, random.Random(0)))
        return self.asked - before


def budgeted_world() -> Cluster:
    """Twelve nodes with pods of kinds of their own; each of eight budgets demands a label, or excludes one."""
    pods = [low(f"p{number}", f"n{number}", labels={"app": f"a{number}"}) for number in range(12)]
    selectors = [label("app", f"a{number}", operator="In" if number < 4 else "NotIn") for number in range(8)]
    budgets = [budget(f"b{number}", one) for number, one in enumerate(selectors)]
    return world(*(node(f"n{number}") for number in range(12)), *pods, budgets=budgets)


def test_budgets_are_asked_only_about_nodes_where_the_pod_fits_with_all_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    around, counting = budgeted_world(), Counting(monkeypatch)
    around.set_pod(pod("heavy", on="n0", requests={"cpu": 1}, priority=99))
    assert counting.during(DefaultPreemption(), around, wanted(5)) == 0
    assert counting.during(DefaultPreemption(), around, wanted(4)) == 8


@pytest.mark.parametrize("seed", range(60))
def test_what_a_budget_selects_of_many_labels_is_what_it_selects_of_each(seed: int) -> None:
    chance, sets = random.Random(f"labels/{seed}"), LabelSets()
    keys, values = ("app", "tier", "zone"), ("", "a", "b", "c")
    requirements = [
        Requirement(key=chance.choice(keys), operator=operator, values=tuple(values))
        for operator, values in (
            ("In", chance.sample(values, chance.randint(1, 3))),
            ("NotIn", chance.sample(values, chance.randint(1, 3))),
            ("Exists", []),
            ("DoesNotExist", []),
        )
    ]
    stated = [
        LabelSelector(match_expressions=tuple(chance.sample(requirements, chance.randint(1, 4)))) for _ in range(8)
    ]
    selectors = [(IndexedSelector(one), compile_selector(one)) for one in stated]
    for _ in range(3):
        for _ in range(10):
            sets.number({key: chance.choice(values) for key in chance.sample(keys, chance.randint(1, 3))})
        for selector, matcher in selectors:
            assert sets.selected(selector).tolist() == [matcher.matches(labels) for labels in sets.labels]


def test_long_selectors_are_compiled_when_budgets_come_and_asked_about_the_labels_that_pods_have() -> None:
    def work(count: int) -> int:
        asked = [Requirement(key=f"k{number}", operator="NotIn", values=("x",)) for number in range(count)]
        asked.append(Requirement(key="app", operator="NotIn", values=tuple(f"x{number}" for number in range(count))))
        around = budgeted_world()
        around.take(budget("long", LabelSelector(match_expressions=tuple(asked))))
        slots = np.array([one.slot for one in around.pods.by_id.values()])
        return lines(lambda: Budgets(around).violating(around, slots, around.pods.rows[slots].astype(np.intp)))

    work(1)  # what is asked for the first time takes more
    assert work(2000) == work(200)


def test_budget_whose_selector_stays_as_it_is_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    around = world(node("a"), low("one", "a", labels=LABELS), budgets=[budget("x", WEB)])
    known = around.objects.of(PodDisruptionBudget)["default/x"]
    assert known.spec.selector is not None
    selector = around.budget_selectors.of("default/x", known.spec.selector).selector
    monkeypatch.setattr(object_selectors, "IndexedSelector", None)
    around.take(replace(known, metadata=replace(known.metadata, resource_version="2")))
    assert selector is not None
    assert len(Budgets(around).of(low("one", "a", labels=LABELS))) == 1
    around.drop(known)
    assert around.budget_selectors._by_key == {}


def test_budgets_are_asked_about_the_same_labels_once(monkeypatch: pytest.MonkeyPatch) -> None:
    around, counting, plugin = budgeted_world(), Counting(monkeypatch), DefaultPreemption()
    assert counting.during(plugin, around, wanted()) == 8
    assert counting.during(plugin, around, wanted()) == 0
    around.take(budget("b7", label("app", "a7", operator="NotIn"), 3))
    assert counting.during(plugin, around, wanted()) == 0
    around.set_pod(low("more", "n3", cpu=0, labels={"app": "other"}))
    assert counting.during(plugin, around, wanted()) == 8
    around.take(budget("b7", label("app", "a6", operator="NotIn")))
    assert counting.during(plugin, around, wanted()) == 1


@pytest.mark.parametrize("spare", [0, 1024])
def test_labels_that_no_pod_has_any_more_are_forgotten_and_budgets_hold_on(
    monkeypatch: pytest.MonkeyPatch, spare: int
) -> None:
    monkeypatch.setattr(budgets_module, "SPARE", spare)
    plugin = DefaultPreemption()
    for number in range(9):
        mine = label("app", f"a{number}")
        kept, gone = (low(name, "a", rank, cpu=2) for name, rank in (("kept", 1), ("gone", 5)))
        kept = replace(kept, metadata=replace(kept.metadata, labels={"app": f"a{number}"}))
        gone = replace(gone, metadata=replace(gone.metadata, labels={"app": f"b{number}"}))
        around = world(node("a"), kept, gone, budgets=[budget("x", mine)])
        decision = Engine(around, default_profile(), random.Random(0)).decide(wanted(2))
        result = plugin.post_filter(wanted(2), FailedCycle(decision, random.Random(0)))
        assert [one.metadata.name for one in result.victims] == ["gone"]
        assert plugin._budgets is not None
        assert len(plugin._budgets._sets["default"].labels) <= (6 if spare == 0 else 18)


def naively_violating(pods: list[Pod], budgets: list[PodDisruptionBudget], rules: BudgetRules) -> set[str]:
    """Count the pods of each node from the first on against every budget that selects them, one by one."""
    found: set[str] = set()
    left = {
        (one.spec.node_name, given.metadata.name): given.status.disruptions_allowed for one in pods for given in budgets
    }
    for one in pods:
        for given in sorted(
            budgets, key=lambda budget: (max(0, budget.status.disruptions_allowed), budget.metadata.name)
        ):
            if not selects(given, one, rules) or one.metadata.name in given.status.disrupted_pods:
                continue
            left[one.spec.node_name, given.metadata.name] -= 1
            if left[one.spec.node_name, given.metadata.name] < 0:
                found.add(one.metadata.name)
                if rules.stops_at_violation:
                    break
    return found


def selects(given: PodDisruptionBudget, one: Pod, rules: BudgetRules) -> bool:
    stated = given.spec.selector
    if not rules.empty_selects_all and (not one.metadata.labels or stated == LabelSelector()):
        return False
    return stated is not None and compile_selector(stated).matches(one.metadata.labels)


@pytest.mark.parametrize("rules", [BudgetRules(), BudgetRules(stops_at_violation=True), BudgetRules(True, True)])
@pytest.mark.parametrize("seed", range(40))
def test_many_budgets_protect_what_each_of_them_protects(seed: int, rules: BudgetRules) -> None:
    chance, known = random.Random(f"many/{seed}"), None
    around = world(*(node(f"n{number}") for number in range(4)))
    budgets: dict[str, PodDisruptionBudget] = {}
    pods: list[Pod] = []
    for _ in range(4):
        for number in range(len(pods), len(pods) + 6):
            labels = {key: chance.choice("xyz") for key in chance.sample(("app", "tier"), chance.randint(0, 2))}
            pods.append(low(f"p{number}", f"n{number % 4}", cpu=0, labels=labels))
            around.set_pod(pods[-1])
        for _ in range(8):
            operator = chance.choice(("In", "NotIn"))
            selector = label(chance.choice(("app", "tier")), *chance.sample("xyz", 2), operator=operator)
            selector = selector if chance.random() < 0.9 else LabelSelector()
            disrupted = {f"p{chance.randrange(20)}": None} if chance.random() < 0.3 else None
            one = budget(f"b{chance.randrange(20)}", selector, chance.choice((-1, 0, 0, 1, 2, 9)), disrupted)
            budgets[one.metadata.name] = one
            around.take(one)
        if chance.random() < 0.5:
            around.drop(budgets.pop(chance.choice(sorted(budgets))))
        known = Budgets(around, known, rules)
        ordered = sorted(pods, key=lambda placed: placed.spec.node_name)
        some = [placed for placed in ordered if chance.random() < 0.8]
        slots = np.array([around.pods.by_id[placed.metadata.uid].slot for placed in some])
        violating = known.violating(around, slots, around.pods.rows[slots].astype(np.intp)).tolist()
        found = {placed.metadata.name for placed, is_so in zip(some, violating, strict=True) if is_so}
        assert found == naively_violating(some, list(budgets.values()), rules)


def test_evictions_that_budgets_count_already_cost_a_look_at_each_and_none_at_all_pods() -> None:
    def work(pods: int, budgets: int) -> int:
        placed = [low(f"p{number}", f"n{number % 4}", labels=LABELS) for number in range(pods)]
        given = [budget(f"b{number}", WEB, 1, {f"p{number}": None}) for number in range(budgets)]
        around = world(*(node(f"n{number}") for number in range(4)), *placed, budgets=given)
        slots = np.array([around.pods.by_id[one.metadata.uid].slot for one in sorted(placed, key=node_of)])
        known = Budgets(around)
        known.violating(around, slots, around.pods.rows[slots].astype(np.intp))
        return lines(lambda: known.violating(around, slots, around.pods.rows[slots].astype(np.intp)))

    node_of = attrgetter("spec.node_name")
    assert work(400, 40) - work(400, 20) < work(400, 20) / 4


def budgets_in_the_way(nodes: int, budgets: int) -> Cluster:
    """A node for each pod, of a kind of its own, and budgets that each select all but one."""
    pods = [low(f"p{number}", f"n{number}", labels={"app": f"a{number}"}) for number in range(nodes)]
    given = [budget(f"b{number}", label("app", f"a{number}", operator="NotIn")) for number in range(budgets)]
    return world(*(node(f"n{number}") for number in range(nodes)), *pods, budgets=given)


def failed_of(around: Cluster) -> FailedCycle:
    return FailedCycle(Engine(around, default_profile(), random.Random(0)).decide(wanted()), random.Random(0))


def asked(plugin: DefaultPreemption, around: Cluster) -> PostFilterResult:
    return plugin.post_filter(wanted(), failed_of(around))


def test_many_budgets_of_many_kinds_of_pods_cost_a_preemption_no_more_than_both_together() -> None:
    def work(nodes: int, budgets: int) -> int:
        around, plugin = budgets_in_the_way(nodes, budgets), DefaultPreemption()
        assert asked(plugin, around).nominated_node
        failed = failed_of(around)
        return lines(lambda: plugin.post_filter(wanted(), failed))

    few, many = work(20, 20), work(80, 80)
    assert many < 4.5 * few


def test_labels_that_come_are_asked_about_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    around, plugin, sizes = budgets_in_the_way(12, 40), DefaultPreemption(), list[int]()
    selected = LabelSets.selected

    def noted(sets: LabelSets, one: Any) -> Any:
        sizes.append(len(sets.labels))
        return selected(sets, one)

    monkeypatch.setattr(LabelSets, "selected", noted)
    asked(plugin, around)
    assert sizes == [12] * 40
    around.set_pod(low("more", "n3", cpu=0, labels={"app": "other"}))
    asked(plugin, around)
    assert sizes[40:] == [1] * 40
    asked(plugin, around)
    assert len(sizes) == 80
