"""DefaultPreemption: who may preempt, who has to go, which node is chosen, what is said where nothing helps."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from policysched.app.configuration.profiles import default_profile
from policysched.errors import UsageError
from policysched.framework import Cluster, Code, Mask, PostFilterResult, RowNumbers
from policysched.model.objects import (
    Affinity,
    LabelSelector,
    Metadata,
    Node,
    Pod,
    PodCondition,
    PodDisruptionBudget,
    PodStatus,
    Requirement,
    TopologySpreadConstraint,
)
from policysched.model.objects.cluster import PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from policysched.model.selection.selectors import LabelMatcher, compile_selector
from policysched.plugins.default_preemption import budgets as budgets_module
from policysched.plugins.default_preemption.budgets import Budgets, LabelSets
from policysched.plugins.default_preemption.plugin import DefaultPreemption, PreemptionArguments, PreemptionDetails
from policysched.plugins.default_preemption.search import Search, search_victims
from policysched.plugins.default_preemption.slices import SLICE
from policysched.plugins.registry import plugin_named
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle
from policysched.schedule.cycle.what_if import Trial
from tests.build import cluster, node, pod
from tests.plugins.inter_pod_affinity.build import away, label, near, term

NOW = 1_800_000_000.0
CORES = {"cpu": 4}


def low(name: str, on: str, priority: int = 0, *, cpu: int = 4, minute: int = 0, **more: Any) -> Pod:
    """A placed pod that takes a node of four cores, having started at a minute."""
    made = pod(name, on=on, requests={"cpu": cpu}, priority=priority, **more)
    return replace(made, status=PodStatus(start_time=f"2026-01-01T00:{minute:02}:00Z"))


def going(of: Pod, reason: str = "PreemptionByScheduler") -> Pod:
    told = [PodCondition(type="DisruptionTarget", status="True", reason=reason)]
    metadata = replace(of.metadata, deletion_timestamp="2026-01-01T01:00:00Z")
    return replace(of, metadata=metadata, status=replace(of.status, conditions=told))


def budget(
    name: str, selector: LabelSelector | None, allowed: int = 0, disrupted: Mapping[str, str | None] | None = None
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=Metadata(name=name, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods=dict(disrupted or {})),
    )


def wanted(cpu: int = 4, priority: int = 10, **spec: Any) -> Pod:
    return pod("wanted", requests={"cpu": cpu}, priority=priority, **spec)


def world(*objects: Node | Pod, budgets: Iterable[PodDisruptionBudget] = ()) -> Cluster:
    made = cluster(*objects)
    made.time.move(NOW)
    for one in budgets:
        made.take(one)
    return made


def preempt(around: Cluster, of: Pod, given: PreemptionArguments | None = None) -> PostFilterResult:
    decision = Engine(around, default_profile(), random.Random(0)).decide(of)
    assert decision.row < 0
    return DefaultPreemption(given).post_filter(of, FailedCycle(decision, random.Random(0)))


def chosen(around: Cluster, of: Pod) -> tuple[str | None, list[str]]:
    result = preempt(around, of)
    assert result.status is None, result.status
    return result.nominated_node, [one.metadata.name for one in result.victims]


def best(around: Cluster, of: Pod) -> list[str]:
    details = preempt(around, of).details
    assert isinstance(details, PreemptionDetails)
    return details.choice.best


def said(around: Cluster, of: Pod) -> tuple[str, str | None]:
    result = preempt(around, of)
    assert result.status is not None
    return result.status.message, result.nominated_node


def test_pod_of_lower_priority_goes() -> None:
    assert chosen(world(node("a"), low("one", "a")), wanted()) == ("a", ["one"])


def test_only_those_go_that_have_to_and_the_more_important_ones_stay() -> None:
    pods = [low(f"p{priority}", "a", priority, cpu=1) for priority in range(4)]
    assert chosen(world(node("a"), *pods), wanted(2)) == ("a", ["p1", "p0"])


def test_of_equal_priority_who_started_first_stays() -> None:
    pods = [low(f"m{minute}", "a", cpu=2, minute=minute) for minute in (5, 3)]
    assert chosen(world(node("a"), *pods), wanted(2)) == ("a", ["m5"])


def test_pod_without_a_start_counts_as_started_now() -> None:
    fresh = replace(low("fresh", "a", cpu=2), status=PodStatus())
    assert chosen(world(node("a"), fresh, low("old", "a", cpu=2)), wanted(2)) == ("a", ["fresh"])


def test_room_that_is_left_saves_a_less_important_pod() -> None:
    pods = [low("big", "a", 5, cpu=3), low("small", "a", 1, cpu=1)]
    assert chosen(world(node("a"), *pods), wanted(2)) == ("a", ["big"])


def test_pods_of_equal_priority_do_not_go() -> None:
    text, nominated = said(world(node("a"), low("same", "a", 10)), wanted())
    assert text == "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    assert nominated == ""


def test_nodes_that_preemption_cannot_help_say_so() -> None:
    around = world(node("a"), node("b", allocatable={"cpu": 1}), low("same", "a", 10), low("mid", "a", 3, cpu=0))
    text, nominated = said(around, wanted())
    assert text == (
        "preemption: 0/2 nodes are available: 1 Insufficient cpu, 1 Preemption is not helpful for scheduling."
    )
    assert nominated == ""


def test_pod_that_never_preempts_keeps_its_nomination() -> None:
    never = wanted(preemption_policy="Never")
    text, nominated = said(world(node("a"), low("one", "a")), never)
    assert (text, nominated) == ("preemption: not eligible due to preemptionPolicy=Never.", None)


def test_victims_that_go_already_are_waited_for() -> None:
    nominated = replace(wanted(), status=PodStatus(nominated_node_name="a"))
    around = world(node("a"), node("b"), going(low("one", "a")), low("two", "b"))
    text = "preemption: not eligible due to a terminating pod on the nominated node."
    assert said(around, nominated) == (text, None)


@pytest.mark.parametrize(
    "there", [going(low("one", "a"), "EvictionByEvictionAPI"), going(low("one", "a", 10)), low("one", "a", 10)]
)
def test_others_that_go_are_not_waited_for(there: Pod) -> None:
    nominated = replace(wanted(), status=PodStatus(nominated_node_name="a"))
    assert preempt(world(node("a"), node("b"), there, low("two", "b")), nominated).status is None


def test_nominated_node_that_is_gone_or_hopeless_is_left() -> None:
    for around in (
        world(node("b"), low("two", "b")),
        world(node("a", unschedulable=True), going(low("one", "a")), node("b"), low("two", "b")),
    ):
        assert chosen(around, replace(wanted(), status=PodStatus(nominated_node_name="a")))[0] == "b"


def test_victims_that_go_already_are_chosen_and_not_deleted_again() -> None:
    result = preempt(world(node("a"), going(low("one", "a"))), wanted())
    assert (result.nominated_node, [one.metadata.name for one in result.victims]) == ("a", ["one"])
    assert result.act is None


WEB = label("app", "web")
LABELS = {"app": "web"}


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
    assert Budgets(around).violating(around, np.array(slots)).tolist() == expected * 2


def test_budget_is_compiled_once_as_long_as_it_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compiling = budgets_module._selection
    monkeypatch.setattr(budgets_module, "_selection", lambda one: compiled.append(one.metadata.name) or compiling(one))
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

        def selected(sets: LabelSets, matcher: LabelMatcher) -> Mask:
            self.asked += 1
            return asking(sets, matcher)

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
        Requirement(key=chance.choice(keys), operator=operator, values=values)
        for operator, values in (
            ("In", chance.sample(values, chance.randint(1, 3))),
            ("NotIn", chance.sample(values, chance.randint(1, 3))),
            ("Exists", []),
            ("DoesNotExist", []),
        )
    ]
    matchers = [
        compile_selector(LabelSelector(match_expressions=chance.sample(requirements, chance.randint(1, 3))))
        for _ in range(8)
    ]
    for _ in range(3):
        for _ in range(10):
            sets.number({key: chance.choice(values) for key in chance.sample(keys, chance.randint(1, 3))})
        for matcher in matchers:
            assert sets.selected(matcher).tolist() == [matcher.matches(labels) for labels in sets.labels]


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


def test_lowest_highest_priority_of_the_victims_comes_second() -> None:
    around = world(node("a"), node("b"), low("one", "a", 5), low("x", "b", 4, cpu=2), low("y", "b", 4, cpu=2))
    assert best(around, wanted()) == ["b"]


def test_lowest_sum_of_priorities_comes_third_and_every_victim_costs() -> None:
    around = world(
        node("a"), node("b"), *(low(f"a{number}", "a", -5, cpu=2) for number in range(2)), low("b0", "b", -5)
    )
    assert best(around, wanted()) == ["b"]


def test_latest_start_of_the_most_important_victims_comes_last() -> None:
    around = world(
        node("a"), node("b"), node("c"), low("x", "a", minute=1), low("y", "b", minute=2), low("z", "c", minute=2)
    )
    assert best(around, wanted()) == ["b", "c"]
    whys = preempt(around, wanted()).details.describe()["others"]
    assert whys["a"]["why"] == ("start of the most important victim: 2026-01-01T00:01:00Z against 2026-01-01T00:02:00Z")


def test_starts_beyond_the_years_of_dates_are_written_down() -> None:
    started = {"a": "0001-01-01T00:00:00+23:00", "b": "9999-12-31T23:59:59-23:00", "c": "9999-12-31T23:00:00Z"}
    pods = [replace(low(on, on), status=PodStatus(start_time=time)) for on, time in started.items()]
    around = world(*map(node, started), *pods)
    assert chosen(around, wanted()) == ("b", ["b"])
    whys = preempt(around, wanted()).details.describe()["others"]
    criterion = "start of the most important victim"
    assert whys["a"]["why"] == f"{criterion}: 0000-12-31T01:00:00Z against 10000-01-01T22:59:59Z"
    assert whys["c"]["why"] == f"{criterion}: 9999-12-31T23:00:00Z against 10000-01-01T22:59:59Z"


def test_victims_whose_presence_keeps_the_pod_away_go_by_whatever_filter() -> None:
    around = world(node("a", labels={"host": "a"}), low("near", "a", cpu=1, labels=LABELS), low("far", "a", cpu=1))
    assert chosen(around, wanted(1, affinity=away(term(WEB, "host")))) == ("a", ["near"])


def test_pods_of_equal_priority_nominated_to_the_node_keep_their_place() -> None:
    around = world(node("a"), low("one", "a", cpu=2), low("two", "a", cpu=2))
    promised = replace(pod("promised", requests={"cpu": 2}, priority=10), status=PodStatus(nominated_node_name="a"))
    around.nominations.update(promised)
    assert chosen(around, wanted(2))[1] == ["one", "two"]
    text, _ = said(around, wanted(3))
    assert text == "preemption: 0/1 nodes are available: 1 Insufficient cpu."


def test_nominations_of_lower_priority_on_the_node_are_cleared() -> None:
    around = world(node("a"), low("one", "a"))
    for name, priority in (("lower", 5), ("equal", 10)):
        made = replace(pod(name, priority=priority, requests={"cpu": 0}), status=PodStatus(nominated_node_name="a"))
        around.nominations.update(made)
    assert [one.metadata.name for one in preempt(around, wanted()).details.cleared] == ["lower"]


def test_default_arguments_look_at_every_node_and_others_bound_the_search() -> None:
    around = world(*(one for number in range(200) for one in (node(f"n{number}"), low(f"p{number}", f"n{number}"))))
    assert len(list(preempt(around, wanted()).details.choice.candidates())) == 200
    few = PreemptionArguments(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=7)
    assert len(list(preempt(around, wanted(), few).details.choice.candidates())) == 7


def test_bounded_search_goes_on_until_a_candidate_violates_nothing() -> None:
    pods = [low(f"p{number}", f"n{number}", labels=LABELS if number else {}) for number in range(20)]
    around = world(*(node(f"n{number}") for number in range(20)), *pods, budgets=[budget("x", WEB)])
    few = PreemptionArguments(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=1)
    assert preempt(around, wanted(), few).nominated_node == "n0"


@pytest.mark.parametrize(
    "args",
    [
        {"minCandidateNodesPercentage": 101},
        {"minCandidateNodesAbsolute": -1},
        {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
    ],
)
def test_arguments_that_kube_scheduler_refuses_are_refused(args: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        plugin_named("DefaultPreemption", args)


class OneByOne(FailedCycle):
    """A decision that answers for no more than one node at a time."""

    def verdicts(self, changed: Any) -> None:  # noqa: ARG002 - the protocol's signature
        return None


class Unbounded(FailedCycle):
    """A decision that does not say how many pods may be on a node."""

    def most_pods(self, rows: RowNumbers) -> NDArray[np.int64]:
        return np.full(rows.size, 1 << 62)


def told(found: Search) -> list[Any]:
    candidates = set(found.candidates.tolist())
    victims = [found.victims_and_violations(place) for place in sorted(candidates)]
    return [found.rows.tolist(), candidates, victims, found.failures()]


def some_rule(chance: random.Random) -> Affinity:
    """What keeps a pod away from others, or near to them."""
    return chance.choice((away, away, near))(term(label("app", chance.choice("xyz")), chance.choice(("host", "zone"))))


def some_constraints(chance: random.Random) -> list[TopologySpreadConstraint]:
    made = TopologySpreadConstraint(
        topology_key=chance.choice(("host", "zone")),
        when_unsatisfiable="DoNotSchedule",
        max_skew=chance.randint(1, 4),
        label_selector=label("app", chance.choice("xyz")),
    )
    return [made] * chance.randint(0, 1)


@pytest.mark.parametrize("seed", range(80))
def test_search_on_all_nodes_together_finds_what_it_finds_on_one_after_the_other(seed: int) -> None:
    chance = random.Random(f"together/{seed}")
    names = [f"n{number}" for number in range(12)]
    objects: list[Node | Pod] = []
    rules = [None] if seed < 40 else [None, some_rule(chance), some_rule(chance)]
    for name in names:
        places = {"host": name, "zone": chance.choice("xyz")}
        allocatable = {"cpu": chance.randint(4, 6), "pods": chance.choice((5, 110))}
        objects.append(node(name, allocatable=allocatable, labels=places))
        left = 6
        while left > 0:
            cpu = chance.randint(0, min(2, left))
            affinity = chance.choice(rules)
            made = low(
                f"p{len(objects)}", name, chance.randint(-2, 11), cpu=cpu, minute=len(objects) % 60, affinity=affinity
            )
            objects.append(replace(made, metadata=replace(made.metadata, labels={"app": chance.choice("xyz")})))
            left -= cpu
    budgets = [budget(app, label("app", app), chance.randint(0, 2)) for app in "xy"]
    around = world(*objects, budgets=budgets)
    for number in range(chance.choice((0, 3))):
        affinity = chance.choice(rules)
        promised = pod(f"q{number}", requests={"cpu": 1}, priority=chance.randint(0, 12), affinity=affinity)
        around.nominations.set(promised, chance.choice(names))
    of = wanted(chance.randint(3, 5), affinity=chance.choice(rules), labels={"app": chance.choice("xyz")})
    if seed >= 40:
        of = replace(of, spec=replace(of.spec, topology_spread_constraints=some_constraints(chance)))
    decision = Engine(around, default_profile(), random.Random(0)).decide(of)
    assert decision.row < 0
    rows = decision.rows_with(Code.UNSCHEDULABLE)
    found = [
        search_victims(failed(decision, random.Random(0)), 10, rows, Budgets(around), NOW)
        for failed in (FailedCycle, OneByOne, Unbounded)
    ]
    assert found[0].verdicts is not None
    assert found[1].verdicts is None
    assert told(found[0]) == told(found[1]) == told(found[2])
    results = [outcome(failed(decision, random.Random(0))) for failed in (FailedCycle, OneByOne)]
    assert results[0] == results[1]


def outcome(failed: FailedCycle, given: PreemptionArguments | None = None) -> Any:
    """What a preemption comes to: every candidate and the best ones, or what is said."""
    result = DefaultPreemption(given).post_filter(failed.pod, failed)
    if result.ask is not None:
        result = asyncio.run(result.ask())  # type: ignore[arg-type]
    if result.status is not None:
        return result.status, result.nominated_node
    assert isinstance(result.details, PreemptionDetails)
    choice = result.details.choice
    return result.nominated_node, choice.best, list(choice.candidates())


def many(count: int, priority: int = 0) -> Cluster:
    places = [(f"n{number}", low(f"p{number}", f"n{number}", priority)) for number in range(count)]
    return world(*(one for name, placed in places for one in (node(name), placed)))


class Pausing(OneByOne):
    """Counts the nodes that are asked about one by one, and lets something happen at each pause."""

    def __init__(self, around: Cluster, of: Pod, meanwhile: Callable[[int], None] | None = None) -> None:
        self.engine, self.of, self.meanwhile = Engine(around, default_profile(), random.Random(0)), of, meanwhile
        self.asked: list[int] = []
        self.pauses = 0
        super().__init__(self.engine.decide(of), random.Random(0), turn=self._others)

    def trial(self, row: int) -> Trial:
        self.asked.append(row)
        return super().trial(row)

    async def _others(self) -> Decision | None:
        self.pauses += 1
        if self.meanwhile is None:
            return None
        self.meanwhile(self.pauses)
        return self.engine.decide(self.of)


def test_arguments_bound_how_many_nodes_are_asked_one_by_one() -> None:
    few = PreemptionArguments(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=7)
    failed = Pausing(many(300), wanted())
    *_, candidates = outcome(failed, few)
    assert (len(candidates), len(failed.asked)) == (7, 7)
    failed = Pausing(many(300), wanted())
    outcome(failed)
    assert sorted(failed.asked) == list(range(300))


def test_long_search_pauses_after_a_few_pods() -> None:
    failed = Pausing(many(1000), wanted())
    outcome(failed)
    assert failed.pauses >= 1000 // SLICE


def test_what_changes_in_a_pause_counts_for_the_nodes_that_are_left_and_for_the_chosen_one() -> None:
    around = many(200)

    def meanwhile(pause: int) -> None:
        if pause == 1:  # the nodes that were asked about are worse now or gone, all others but one are gone
            for number in range(199):
                if number >= SLICE or number % 2:
                    around.remove_node(f"n{number}")
                else:
                    around.remove_pod(f"default.p{number}")
                    around.set_pod(low(f"q{number}", f"n{number}", 9))

    failed = Pausing(around, wanted(), meanwhile)
    chosen_node, best, candidates = outcome(failed)
    assert chosen_node == "n199"
    assert "n199" in best
    assert {one.node for one in candidates} <= {f"n{number}" for number in (*range(SLICE), 199)}


def test_search_ends_where_the_pod_fits_by_now() -> None:
    around = many(200)

    def meanwhile(_: int) -> None:
        around.set_node(node("free"))

    status, nominated = outcome(Pausing(around, wanted(), meanwhile))
    assert "may fit by now" in status.message
    assert nominated is None
