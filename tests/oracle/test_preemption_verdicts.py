"""What kube-scheduler itself answers where preemption comes in: the corners by which the judge is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.objects import NO_CLAIMS, RELEASE

from .objects import case, container, node, pod

if TYPE_CHECKING:
    from .oracle import Oracle, Record

pytestmark = pytest.mark.oracle

PREFIX = f"{NO_CLAIMS}preemption: "


def placed(name: str, home: str, priority: int = 0, *, minute: int = 0, cpu: str = "4", **metadata: Any) -> Any:
    """Make a pod that fills a node, having begun at a minute."""
    made = pod(
        name,
        nodeName=home,
        priority=priority,
        containers=[container(requests={"cpu": cpu})],
        status={"phase": "Running", "startTime": f"2026-01-01T00:{minute:02}:00Z"},
    )
    return made | {"metadata": made["metadata"] | {"labels": {"app": name}} | metadata}


def promised(name: str, home: str, priority: int) -> Any:
    wants = [container(requests={"cpu": "1"})]
    return pod(name, priority=priority, containers=wants, status={"nominatedNodeName": home})


def budget(name: str, selector: Any, allowed: int = 0, **status: Any) -> Any:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {} if selector is None else {"selector": selector},
        "status": {"disruptionsAllowed": allowed, **status},
    }


def asked(oracle: Oracle, *others: Any, cpu: str = "4", nodes: str = "ab", status: Any = None, **spec: Any) -> Record:
    """Say what preemption does for a pod of priority 10 that needs a whole node."""
    wanted = pod(priority=10, containers=[container(requests={"cpu": cpu})], status=status, **spec)
    question = case([*map(node, nodes), *others], wanted) | {"config": None, "preempt": True}
    answer: Record = oracle.decide(question)["preemption"]
    return answer


def test_record_is_asked_for(oracle: Oracle) -> None:
    full = case([node("a"), placed("low", "a")], pod(containers=[container(requests={"cpu": "4"})]))
    assert "preemption" not in oracle.decide(full)
    assert "preemption" in oracle.decide(full | {"preempt": True})


def test_pods_of_lower_priority_go(oracle: Oracle) -> None:
    found = asked(oracle, placed("low", "a"), placed("high", "b", 10))
    message = "preemption: found a potential placement for pod on node a, preempting 1 victims"
    assert found == ({"message": message} if RELEASE.preempted_node_is_reported else {}) | {
        "code": "Success",
        "nominated": "a",
        "candidates": {"a": {"victims": ["default/low"], "violations": 0}},
        "best": ["a"],
        "deleted": ["default/low"],
    }


def test_all_equally_good_candidates_are_told(oracle: Oracle) -> None:
    found = asked(oracle, placed("one", "a"), placed("two", "b"), placed("later", "c", 5), nodes="abc")
    assert found["best"] == ["a", "b"]
    assert found["nominated"] in found["best"]
    assert set(found["candidates"]) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("others", "best"),
    [
        ([placed("x", "a", 1), placed("y", "b", 2)], "a"),
        ([placed("x", "a", cpu="3"), placed("y", "a", cpu="1", minute=1), placed("z", "b")], "b"),
        ([placed("x", "a", minute=3), placed("y", "b", minute=4)], "b"),
        ([placed("x", "a", 2), placed("y", "b", 1), budget("all", {"matchLabels": {"app": "y"}})], "a"),
        ([placed("x", "a", 2), placed("y", "b", 1), budget("none", {})], "b"),
        ([placed("x", "a", 2), placed("y", "b", 1), budget("one", {"matchLabels": {"app": "y"}}, 1)], "b"),
        (
            [
                placed("x", "a", 2),
                placed("y", "b", 1),
                budget("gone", {"matchLabels": {"app": "y"}}, disruptedPods={"y": "2026-01-01T00:00:00Z"}),
            ],
            "b",
        ),
    ],
    ids=["highest victim", "sum", "latest start", "budget", "empty budget", "allowed", "already disrupted"],
)
def test_choice(oracle: Oracle, others: list[Any], best: str) -> None:
    assert asked(oracle, *others)["best"] == [best]


def test_violations_are_counted_and_those_victims_spared_first(oracle: Oracle) -> None:
    others = [placed("guarded", "a", cpu="2", minute=5), placed("other", "a", 5, cpu="2"), placed("rest", "b", 10)]
    found = asked(oracle, *others, budget("all", {"matchLabels": {"app": "guarded"}}), cpu="2")
    assert found["candidates"] == {"a": {"victims": ["default/other"], "violations": 0}}
    found = asked(oracle, *others, budget("all", {"matchLabels": {"app": "guarded"}}), cpu="4")
    assert found["candidates"] == {"a": {"victims": ["default/other", "default/guarded"], "violations": 1}}


def test_pod_without_a_start_counts_as_the_latest(oracle: Oracle) -> None:
    fresh = [placed(name, name) | {"status": {"phase": "Running"}} for name in "ab"]
    assert asked(oracle, *fresh, placed("c", "c"), nodes="abc")["best"] == ["a", "b"]


def test_terminating_victim_is_chosen_and_not_deleted_again(oracle: Oracle) -> None:
    going = placed("low", "a", deletionTimestamp="2026-01-01T00:00:00Z")
    found = asked(oracle, going, placed("high", "b", 10))
    assert found["candidates"]["a"]["victims"] == ["default/low"]
    assert "deleted" not in found


def test_pod_waits_for_victims_on_its_nominated_node(oracle: Oracle) -> None:
    going = placed("low", "a", deletionTimestamp="2026-01-01T00:00:00Z")
    going["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    found = asked(oracle, going, placed("other", "b"), status={"nominatedNodeName": "a"})
    assert found["message"] == f"{PREFIX}not eligible due to a terminating pod on the nominated node."
    assert (found["code"], found["nominated"]) == ("Unschedulable", None)


def test_pod_that_may_not_preempt_is_told(oracle: Oracle) -> None:
    found = asked(oracle, placed("low", "a"), placed("other", "b"), preemptionPolicy="Never")
    assert found["message"] == f"{PREFIX}not eligible due to preemptionPolicy=Never."
    assert (found["code"], found["nominated"]) == ("Unschedulable", None)


def test_without_a_candidate_the_nomination_is_cleared(oracle: Oracle) -> None:
    found = asked(oracle, placed("high", "a", 10), placed("small", "b"), cpu="5")
    assert found["message"] == f"{PREFIX}0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    found = asked(oracle, placed("high", "a", 10), placed("higher", "b", 11))
    assert found["message"] == f"{PREFIX}0/2 nodes are available: 2 No preemption victims found for incoming pod."
    assert (found["code"], found["nominated"]) == ("Unschedulable", "")


def test_lower_nominations_to_the_node_are_cleared(oracle: Oracle) -> None:
    waiting = [promised("low-promise", "a", 1), promised("equal-promise", "b", 10), promised("lower", "b", 1)]
    found = asked(oracle, placed("low", "a"), placed("other", "b"), *waiting)
    assert set(found["candidates"]) == {"a"}, "the pod promised to b is as important, and both do not fit"
    assert found["cleared"] == ["default/low-promise"]


def test_rejection_before_any_node_leaves_preemption_without_its_state(oracle: Oracle) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]
    found = asked(oracle, placed("low", "a"), placed("other", "b"), volumes=volumes)
    assert (found["code"], found["message"], found["nominated"]) == ("Error", "not found", None)
