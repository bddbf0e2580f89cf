"""Scripts by hand, one for each way in which the order of calls or what comes of an answer was once another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from policysched.model.release import RELEASES
from tests.oracle.minors import WITH_EACH_MINOR, release_of
from tests.recorder import ours
from tests.recorder.judge import disagreement
from tests.recorder.scripts import NAME, taking, written_node, written_pod
from tests.recorder.theirs import KubeScheduler

pytestmark = pytest.mark.oracle
WAIT = {"code": "Wait", "timeout": 2.0}
NO = {"code": "Unschedulable", "reasons": ["not today"]}
NOMINATE = {"code": "Unschedulable", "reasons": ["soon"], "nominate": "n1"}
REJECT = {"act": "reject", "pod": "p1", "plugin": "a", "message": "go away"}
PARALLEL = {"allowParallel": True}
PREEMPTING = (written_pod("p1", "3"), written_pod("p2", "3"), written_pod("p3", "3", 10))
"""Two that fill the nodes, and one that takes the place of either."""
CROWDED = (*PREEMPTING, written_pod("p4", "3"))
"""The same, and one for which there is no place."""
Answers = dict[str, dict[str, list[Any]]]


def written(
    answers: Answers,
    others: Answers | None = None,
    *,
    points: dict[str, list[str]],
    events: Sequence[Any] | None = None,
    pods: Sequence[Any] = (written_pod("p1"), written_pod("p2")),
    until: float = 60.0,
) -> Any:
    """Make a script with two nodes, two pods, and recorders at some points: what `a` answers, and what `b` does."""
    lists = {point: {"enabled": [{"name": name} for name in names]} for point, names in points.items()}
    lists["score"] = {"enabled": [*lists.get("score", {}).get("enabled", ()), {"name": "order"}]}
    lists["score"]["disabled"] = [{"name": "*"}]
    if "bind" in lists:
        lists["bind"] = {"enabled": [*lists["bind"]["enabled"], {"name": "DefaultBinder"}], "disabled": [{"name": "*"}]}
    if not any(one["spec"]["priority"] for one in pods):
        lists["postFilter"] = {**lists.get("postFilter", {}), "disabled": [{"name": "DefaultPreemption"}]}
    order = {"byNode": {"n1": {"score": 1}, "n2": {"score": 2}}}
    one: dict[str, Any] = {"name": "a", "answers": answers, "takes": taking("a")}
    if events is not None:
        one["events"] = events
    return {
        "id": "written",
        "config": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": 100,
            "parallelism": 16 if "preBindPreFlight" in answers else 1,
            "profiles": [{"schedulerName": NAME, "plugins": lists}],
        },
        "plugins": [
            one,
            {"name": "b", "answers": others or {}, "takes": taking("b")},
            {
                "name": "order",
                "plainScore": True,
                "answers": {"score": {pod: [order] * 9 for pod in ("p1", "p2", "p3", "p4")}},
            },
        ],
        "steps": [
            {"at": 0.011, "set": written_node("n1")},
            {"at": 0.011, "set": written_node("n2")},
            *({"at": round(0.5173 + 0.7 * place, 4), "set": one} for place, one in enumerate(pods)),
        ],
        "until": until,
    }


def placed_again() -> Any:
    """Write a script: a pod leaves its node and returns, and then one of the node's two equal pods has to go."""
    script = written(
        {"filter": {"p3": [{"byNode": {"n1": NO}}] * 3}, "permit": {"p1": [WAIT]}},
        points={"preFilter": ["a"], "filter": ["a"], "permit": ["a"]},
        pods=(written_pod("p1", "2"), written_pod("p2", "2"), written_pod("p3", "2", 10)),
    )
    script["steps"][-1]["at"] = 20.0173
    return script


def unbound_victim() -> Any:
    """Write a script: a pod that waits at Permit is preempted while a pod of its priority waits for a place."""
    wants = (("p1", 0), ("p2", 5), ("p3", 0), ("p4", 10))
    script = written(
        {"permit": {"p1": [{"code": "Wait", "timeout": 75.0}]}},
        points={"preFilter": ["a"], "permit": ["a"]},
        pods=[written_pod(name, "3", priority) for name, priority in wants],
    )
    script["steps"][-1]["at"] = 20.0173
    return script


SCRIPTS = {
    "a preemptor of a pod that waits at Permit is tried before others": unbound_victim(),
    "of equal pods the one that was placed last is evicted": placed_again(),
    "PreScore goes in its own order": written({}, points={"preScore": ["b", "a"], "score": ["a", "b"]}),
    "a pod that waits at Permit is nominated": written({"permit": {"p1": [WAIT]}}, points={"permit": ["a"]}),
    "a pod with work at PreBind is nominated": written({}, points={"preBind": ["a", "b"]}),
    "a failed pod is nominated no more": written(
        {"preBind": {"p1": [{"code": "Error", "reasons": ["broken"]}]}}, points={"preBind": ["a"]}
    ),
    "the end of its own nomination wakes a pod": written(
        {"permit": {"p1": [WAIT]}},
        points={"permit": ["a"]},
        events=[{"resource": "Pod", "actions": ["Delete"], "hint": "Queue"}],
        until=700.0,
    ),
    "a pod rejected at Permit is flushed in time": written(
        {"permit": {"p2": [WAIT]}},
        points={"permit": ["a"]},
        events=[{"resource": "Node", "actions": ["UpdateNodeLabel"]}],
        until=700.0,
    ),
    "who names no events hears of its own condition": written({"reserve": {"p1": [NO]}}, points={"reserve": ["a"]}),
    "who names other events does not": written(
        {"filter": {"p1": [{"byNode": {"n1": NO, "n2": NO}}]}}, points={"filter": ["a"]}, events=[], until=700.0
    ),
    "narrowed to nothing": written({"preFilter": {"p1": [{"nodes": ["n9"]}]}}, points={"preFilter": ["a", "b"]}),
    "one feasible node is not scored": written(
        {"filter": {"p1": [{"byNode": {"n1": NO}}]}}, points={"filter": ["a"], "preScore": ["a"], "score": ["a"]}
    ),
    "Skip at PreFilter leaves Filter out": written(
        {"preFilter": {"p1": [{"code": "Skip"}]}}, points={"preFilter": ["a", "b"], "filter": ["a", "b"]}
    ),
    "a rejection at Reserve gives back in reverse": written({"reserve": {"p1": [NO]}}, points={"reserve": ["b", "a"]}),
    "Pending comes back at once": written(
        {"permit": {"p1": [{"code": "Pending", "reasons": ["soon"]}]}}, points={"permit": ["a"]}
    ),
    "a pod allowed from elsewhere": written(
        {
            "permit": {"p1": [{"code": "Wait", "timeout": 75.0}]},
            "postBind": {"p2": [{"do": [{"act": "allow", "pod": "p1", "plugin": "a"}]}]},
        },
        points={"permit": ["a"], "postBind": ["a"]},
    ),
    "a pod rejected from elsewhere": written(
        {
            "permit": {"p1": [{"code": "Wait", "timeout": 75.0}]},
            "reserve": {"p2": [{"do": [REJECT]}]},
        },
        points={"permit": ["a"], "reserve": ["a"]},
    ),
    "PostFilter nominates": written(
        {
            "filter": {"p1": [{"byNode": {"n1": NO, "n2": NO}}] * 2},
            "postFilter": {"p1": [{"code": "Success", "reasons": [], "nominate": "n1"}]},
        },
        points={"preFilter": ["a"], "filter": ["a", "b"], "postFilter": ["a", "b"]},
    ),
    "Filter on a nominated node leaves no trace in the state": written(
        {
            "filter": {"p1": [{"byNode": {"n1": NO, "n2": NO}}]},
            "postFilter": {"p1": [{"code": "Success", "reasons": [], "nominate": "n1"}]},
        },
        points={point: ["a"] for point in ("preFilter", "filter", "postFilter", "reserve")},
    ),
    "Filter on a node nominated to others leaves no trace in the state": written(
        {"filter": {"p1": [{"byNode": {"n1": NO, "n2": NO}}] * 2}, "postFilter": {"p1": [NOMINATE] * 2}},
        points={point: ["a"] for point in ("preFilter", "filter", "postFilter", "reserve")},
    ),
    "a rejected pod waits until its binding hears of it": written(
        {
            "permit": {"p1": [{"code": "Wait", "timeout": 75.0}]},
            "reserve": {"p2": [{"do": [REJECT, {"act": "allow", "pod": "p1", "plugin": "a"}]}]},
        },
        points={"permit": ["a"], "reserve": ["a"]},
    ),
    "a score out of range": written(
        {"score": {"p1": [{"byNode": {"n1": {"score": 101}}}]}}, points={"score": ["a", "b"]}
    ),
    "PreBind side by side": written(
        {"preBindPreFlight": {"p1": [PARALLEL]}, "preBind": {"p1": [{"pause": 3.0}]}},
        {"preBindPreFlight": {"p1": [PARALLEL]}, "preBind": {"p1": [{"pause": 2.0}]}},
        points={"preBind": ["a", "b"]},
    ),
    "PreBind that fails cancels what runs beside it": written(
        {"preBindPreFlight": {"p1": [PARALLEL]}, "preBind": {"p1": [{"pause": 30.0}]}},
        {"preBindPreFlight": {"p1": [PARALLEL]}, "preBind": {"p1": [{"pause": 2.0, **NO}]}},
        points={"preBind": ["a", "b"], "reserve": ["a", "b"]},
    ),
    "PreBind of whom nothing is allowed goes alone": written(
        {"preBindPreFlight": {"p1": [PARALLEL]}, "preBind": {"p1": [{"pause": 3.0}]}},
        {"preBind": {"p1": [{"pause": 2.0}]}},
        points={"preBind": ["a", "b"]},
    ),
    "a plugin with AddPod at PreFilter alone hears what preemption tries": written(
        {}, points={"preFilter": ["a"]}, pods=PREEMPTING
    ),
    "a plugin at Filter is asked about what preemption tries": written(
        {"filter": {"p3": [{"byNode": {"n1": NO}}]}}, points={"preFilter": ["a"], "filter": ["b", "a"]}, pods=PREEMPTING
    ),
    "who rejected the pod at PreFilter is asked about what preemption tries": written(
        {"preFilter": {"p3": [NO]}, "filter": {"p3": [{"byNode": {"n1": NO}}]}},
        points={"preFilter": ["a", "b"], "filter": ["b", "a"]},
        pods=PREEMPTING,
    ),
    "who fails in what preemption tries is named": written(
        {"filter": {"p3": [{"byNode": {node: {"code": "Error", "reasons": ["broken"]} for node in ("n1", "n2")}}]}},
        {"preFilter": {"p3": [NO]}},
        points={"preFilter": ["b"], "filter": ["a"]},
        pods=PREEMPTING,
    ),
    "a pod in flight hears that others had waited too long": written(
        {
            "filter": {"p1": [{"byNode": {"n1": NO, "n2": NO}}]},
            "permit": {"p2": [{"code": "Wait", "timeout": 400.0}]},
        },
        points={"filter": ["a"], "permit": ["a"]},
        events=[],
        until=900.0,
    ),
    "who skipped at PreFilter is not asked about what preemption tries": written(
        {"preFilter": {"p3": [{"code": "Skip"}]}, "filter": {"p3": [{"byNode": {"n1": NO, "n2": NO}}]}},
        {"preFilter": {"p3": [NO]}},
        points={"preFilter": ["a", "b"], "filter": ["a", "b"]},
        pods=PREEMPTING,
    ),
    "a pod that waits at Permit is preempted in memory": written(
        {"permit": {"p1": [WAIT], "p2": [{"code": "Wait", "timeout": 75.0}]}}, points={"permit": ["a"]}, pods=PREEMPTING
    ),
    "a victim whose binding fails later wakes pods a second time": written(
        {"bind": {"p1": [{"pause": 6.1}], "p2": [{"pause": 6.2}]}}, points={"bind": ["a"]}, pods=CROWDED
    ),
    "who binds itself leaves nothing to the next": written(
        {"bind": {"p1": [{"code": "Success"}]}}, points={"bind": ["a", "b"]}
    ),
}


@WITH_EACH_MINOR
@pytest.mark.parametrize("name", SCRIPTS)
def test_written_scripts_go_as_in_kube_scheduler(kube: KubeScheduler, name: str) -> None:
    script = SCRIPTS[name]
    assert disagreement(kube, script) == []
    assert ours.play(script, release_of(kube))["calls"]


@pytest.mark.parametrize(("minor", "tried"), [("1.36", ["p3", "p4"]), ("1.37", ["p4", "p3"])])
def test_preemptor_of_an_unbound_victim_is_retried_where_a_release_says_so(minor: str, tried: list[str]) -> None:
    outcome = ours.play(unbound_victim(), RELEASES[minor])
    calls = [one["pod"] for one in outcome["calls"] if one["point"] == "preFilter" and one["at"] > 20.0185]
    assert calls[:2] == tried
