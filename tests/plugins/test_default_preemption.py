"""DefaultPreemption: who may preempt, who has to go, which node is chosen, what is said where nothing helps."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.errors import UsageError
from policysched.model.objects import (
    Pod,
    PodStatus,
)
from policysched.plugins.default_preemption.plugin import PreemptionArguments
from policysched.plugins.registry import plugin_named
from tests.build import node, pod
from tests.plugins.inter_pod_affinity.build import away, term
from tests.plugins.preempting import LABELS, WEB, best, budget, chosen, going, low, preempt, said, wanted, world


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
