from __future__ import annotations

from policysched.plugin import Code, CycleState
from policysched.testing import make_node, make_pod, read_pod, scheduling
from tests.examples.plugins import example_plugin

EXAMPLE = "tour/06-multipoint-communicating"
Multipoint = example_plugin(EXAMPLE, "multipoint.py", "MultipointCommunicating")
NODES = [make_node("n1")]


def test_pod_is_turned_away_at_pre_bind_by_what_reserve_noted() -> None:
    with scheduling(Multipoint, nodes=NODES) as scheduler:
        outcome = scheduler.schedule(make_pod("my-test-pod", requests={"cpu": "3"}))
        assert (outcome.result, outcome.message) == ("Unschedulable", "pod is not permitted")
        assert scheduler.events("my-test-pod") == ["pod is not permitted"]
        assert scheduler.schedule(make_pod("other", requests={"cpu": "3"})).node == "n1", "nothing stays reserved"


def test_pod_is_never_bound_however_often_it_is_tried() -> None:
    with scheduling(Multipoint, nodes=NODES) as scheduler:
        scheduler.schedule(make_pod("my-test-pod"))
        for _ in range(5):
            scheduler.advance(20)
        assert scheduler.events("my-test-pod") == ["pod is not permitted"] * 6


def test_note_is_of_one_attempt_and_is_taken_back() -> None:
    plugin, state, pod = Multipoint(), CycleState(), read_pod(make_pod("my-test-pod"))
    assert plugin.reserve(state, pod, "n1") is None
    assert state.clone().read("my-test-pod") == state.read("my-test-pod")
    assert state.clone().read("my-test-pod") is not state.read("my-test-pod")
    plugin.unreserve(state, pod, "n1")
    assert state.get("my-test-pod") is None


def test_reserve_without_a_pod_is_an_error() -> None:
    status = Multipoint().reserve(CycleState(), None, "n1")
    assert (status.code, status.message) == (Code.ERROR, "pod cannot be nil")
