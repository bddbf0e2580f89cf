"""`policysched.why`: what it says of pods in each state, and what stands against nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import policysched
from policysched.app.why.results import RepairKind, State
from policysched.app.why.variants import VariantEvaluator
from policysched.errors import UsageError
from tests.app.dry_runs import Object, node, pod, policy, requiring
from tests.work import calls

SSD: Object = {"disk": "ssd"}
TAINT: Object = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def bound(name: str, to: str, cpu: Any = None, **spec: Any) -> Object:
    return {**pod(name, cpu, nodeName=to, **spec), "status": {"phase": "Running"}}


def test_why_groups_nodes_by_what_they_lack() -> None:
    objects = [
        node("a1", labels={"disk": "hdd"}), node("a2"), node("b", labels=SSD, spec={"taints": [TAINT]}),
        node("c", labels=SSD), bound("big", "c", 3), pod("web", "1500m", nodeSelector=SSD),
    ]  # fmt: skip
    told = policysched.why(objects, "web")
    assert told.state is State.UNSCHEDULABLE
    assert [(one.nodes, one.lacks) for one in told.groups] == [
        (2, ("nodeSelector disk=ssd",)),
        (1, ("a toleration of gpu=yes:NoSchedule",)),
        (1, ("500m cpu",)),
    ]
    assert [(one.change, one.text) for group in told.groups for one in group.repairs] == [
        (RepairKind.POD, "without nodeSelector disk=ssd"),
        (RepairKind.NODE, "label disk=ssd on a1"),
        (RepairKind.NODE, "no taint gpu=yes:NoSchedule on b"),
        (RepairKind.POD, "a toleration of gpu=yes:NoSchedule"),
        (RepairKind.NODE, "500m more cpu on c"),
        (RepairKind.POD, "request 1 cpu instead of 1500m"),
    ]
    assert {one.text: (one.rejects, one.leaves, one.alone) for one in told.conditions} == {
        "nodeSelector disk=ssd": (2, 2, 2), "a toleration of gpu=yes:NoSchedule": (1, 3, 1), "cpu": (1, 3, 1),
    }  # fmt: skip


def test_why_names_the_first_of_many_missing_conditions() -> None:
    taints = [{"key": f"k{number}", "effect": "NoSchedule"} for number in range(1000)]
    told = policysched.why([node("n", spec={"taints": taints}), pod("web")], "web")
    first = [f"a toleration of k{number}:NoSchedule" for number in range(5)]
    more = len(told.groups[0].lacks) - 5
    assert more > 1
    assert told.summary.endswith(f"1 node lacks {' and '.join(first)} and {more} more")
    assert told.groups[0].missing("; ") == "; ".join([*first, f"{more} more"])


def test_why_takes_a_rule_apart_and_tells_values() -> None:
    rule = policy("zones", **requiring('node.labels["zone"] == "a" and node.free.cpu >= 2'))
    objects = [node("n1", labels={"zone": "b"}), node("n2"), bound("big", "n2", 3), pod(), rule]
    told = policysched.why(objects, "web")
    assert {(one.examples, one.lacks) for one in told.groups} == {
        (("n1",), ('policy zones/r: node.labels["zone"] == "a" (node.labels["zone"] is "b")',)),
        (("n2",), ('policy zones/r: node.labels["zone"] == "a" (node.labels["zone"] is missing)',
                   "policy zones/r: node.free.cpu >= 2 (node.free.cpu is 1)")),
    }  # fmt: skip
    assert [one.text for one in told.groups[0].repairs] == ["label zone=a on n1", "without rule r of policy zones"]


@pytest.mark.parametrize(
    ("condition", "full", "empty"),
    [
        ("node.pods.max(peer.priority) < 5", "node.pods.max(peer.priority) is 9",
         "node.pods.max(peer.priority) is missing: no pod on the node has a value"),
        ("node.pods.count(peer.priority > 3) > 3", "node.pods.count(peer.priority > 3) is 1",
         "node.pods.count(peer.priority > 3) is 0"),
        ("node.pods.sum(peer.requests.cpu) > 4", "node.pods.sum(peer.requests.cpu) is 3",
         "node.pods.sum(peer.requests.cpu) is 0"),
        ("max(node.free.cpu) > 10", "max(node.free.cpu) is 4, node.free.cpu is 1",
         "max(node.free.cpu) is 4, node.free.cpu is 4"),
        ("highest + pod.priority < 5", "highest is 9, pod.priority is 1",
         "highest is missing: no pod on the node has a value, pod.priority is 1"),
    ],
)  # fmt: skip
def test_why_tells_values_of_aggregates_and_names(condition: str, full: str, empty: str) -> None:
    rule = policy("p", let=[{"name": "highest", "value": "node.pods.max(peer.priority)"}], **requiring(condition))
    objects = [node("n1"), node("n2"), bound("big", "n1", 3, priority=9), pod(priority=1), rule]
    for name, values in (("n1", full), ("n2", empty)):
        told = policysched.why(objects, "web", name)
        assert [one.lacks for one in told.groups] == [(f"policy p/r: {condition} ({values})",)]


def test_why_names_parts_of_the_pod_that_other_pods_stand_against() -> None:
    away = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "host"}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    near = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "host"}
    spread = {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "web"}}}  # fmt: skip
    port = [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    placed = bound("one", "n1", containers=port)
    placed["metadata"]["labels"] = {"app": "web"}
    wanted = pod(
        containers=port, topologySpreadConstraints=[spread],
        affinity={"podAffinity": {required: [near]}, "podAntiAffinity": {required: [away]}},
    )  # fmt: skip
    wanted["metadata"]["labels"] = {"app": "web"}
    objects = [node("n1", labels={"host": "n1"}), node("n2", labels={"host": "n2"}), placed, wanted]
    told = policysched.why(objects, "web", "n1")
    [group] = told.groups
    assert set(group.lacks) == {
        "host port 80/TCP (used by default/one)", "spread per host within 1 (app=web)", "pod affinity app=db per host",
        "pod anti-affinity app=web per host",
    }  # fmt: skip
    assert [(one.change, one.example) for one in group.repairs] == [(RepairKind.POD, "n1")]


def test_why_says_what_preemption_would_do() -> None:
    objects = [node(), bound("low", "n1", 3), pod("web", 2, priority=10)]
    told = policysched.why(objects, "web")
    assert told.preemption is not None
    assert told.preemption.made == {"victims": ["default/low"]}
    assert told.preemption.text == "with victims on n1: default/low"


def test_why_compares_the_place_of_a_pod_with_the_runner_up() -> None:
    preferring = policy("pin", scores=[{"name": "by-name", "cases": ['node.name == "n1" -> 100', "else -> 0"]}])
    objects = [node("n1"), node("n2"), bound("one", "n1", 1), bound("web", "n1"), preferring]
    told = policysched.why(objects, "web")
    compared = told.comparison
    assert compared is not None
    assert (told.node, compared.here, compared.there) == ("n1", "n1", "n2")
    assert (compared.decisive, compared.decisive_rule) == ("SchedulingPolicy/pin", "by-name")
    assert compared.margin == sum(one.lead for one in compared.differences) > 0
    assert [(one.plugin, one.now, one.weight, one.selected) for one in compared.turns] == [
        ("SchedulingPolicy/pin", 1, 0, ("n2",)),
        ("NodeResourcesFit", 1, 8, ("n2",)),
    ]


def test_why_names_the_tier_that_decides_and_what_would_turn_it() -> None:
    def preferring(name: str, best: str, points: int, **spec: Any) -> Object:
        return policy(
            name, **spec, scores=[{"name": "s", "cases": [f'node.name == "{best}" -> {points}', "else -> 0"]}]
        )

    objects = [
        node("n1"), node("n2"), bound("one", "n1", 1), pod(),
        preferring("zone", "n1", 50, tier=2, weight=2), preferring("other", "n2", 60, tier=2),
        preferring("low", "n2", 100, weight=100),
    ]  # fmt: skip
    told = policysched.why(objects, "web")
    compared = told.comparison
    assert compared is not None
    assert told.summary == (
        "pod default/web would go to n1: n1 is 40 points ahead of n2 in tier 2, by SchedulingPolicy/zone (rule s)"
    )
    assert (compared.here, compared.tier, compared.margin) == ("n1", 2, 40)
    assert [one.tier for one in compared.differences][:3] == [2, 2, 0]
    objects[-3:] = [preferring("zone", "n1", 1, tier=2)]
    assert "n1 is 1 point ahead of n2 in tier 2" in policysched.why(objects, "web").summary
    assert [(one.plugin, one.now, one.weight) for one in compared.turns] == [
        ("SchedulingPolicy/zone", 2, 1), ("SchedulingPolicy/other", 1, 2),
    ]  # fmt: skip
    said = compared.to_dict()
    assert (said["tier"], said["tiers"]["2"], said["totals"]) == (2, [100, 60], [100, 60])
    assert said["differences"]["SchedulingPolicy/zone"]["tier"] == 2


def test_why_says_that_a_tie_of_a_tier_is_decided_below_it() -> None:
    scores = [{"name": "s", "value": 50}]
    objects = [node("n1"), node("n2"), bound("one", "n1", 1), pod(), policy("even", tier=1, scores=scores)]
    compared = policysched.why(objects, "web").comparison
    assert compared is not None
    assert (compared.here, compared.tier, [tier for tier, _, _ in compared.sums]) == ("n2", 0, [1, 0])


def test_why_says_that_a_pod_would_not_be_let_stay() -> None:
    told = policysched.why([node("n1"), node("n2"), bound("web", "n1", nodeSelector=SSD)], "web")
    assert told.state is State.UNSCHEDULABLE
    told = policysched.why([node("n1"), node("n2", labels=SSD), bound("web", "n1", nodeSelector=SSD)], "web")
    assert told.summary == (
        "pod default/web is on n1 but would not fit it if recreated; missing: nodeSelector disk=ssd; "
        "it would go to n2 if recreated"
    )


@pytest.mark.parametrize(
    ("made", "state", "summary"),
    [
        ({"status": {"phase": "Succeeded"}}, State.FINISHED, "is finished (Succeeded) and is not scheduled again"),
        ({"spec": {"schedulingGates": [{"name": "a"}, {"name": "b"}], "containers": []}}, State.GATED,
         "has scheduling gates: a, b"),
        ({"metadata": {"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, State.TERMINATING,
         "is being deleted and is not scheduled again"),
    ],
)  # fmt: skip
def test_why_says_in_one_sentence_that_nobody_decides_about_a_pod(made: Object, state: State, summary: str) -> None:
    told = policysched.why([node(), {**pod(), **made}], "web")
    assert (told.state, told.summary) == (state, f"pod default/web {summary}")


def test_why_evaluates_a_pod_of_the_names_that_are_chosen() -> None:
    objects = [node("n1"), pod(schedulerName="default-scheduler")]
    assert policysched.why(objects, "web").summary == "pod default/web would go to n1, the only node"
    told = policysched.why(objects, "web", scheduler_name="policysched")
    assert (told.state, told.summary) == (
        State.OTHER_SCHEDULER,
        "pod default/web is scheduled by default-scheduler, but only policysched (from --scheduler-name) is evaluated; "
        "set --scheduler-name default-scheduler",
    )
    rule = policy("gpu", schedulerNames=["gpu"], **requiring("true"))
    assert policysched.why(objects, "web", policies=[rule]).state is State.OTHER_SCHEDULER
    free = [*objects, pod("free")]
    assert policysched.why(free, "free", policies=[rule]).scheduler_name == "policysched"
    assert policysched.why(free, "free", policies=[rule], scheduler_name="gpu").scheduler_name == "gpu"


@pytest.mark.parametrize(
    ("made", "field"),
    [
        ({"status": {"phase": ["Pending"]}}, r"status\.phase"),
        ({"status": "Pending"}, "status"),
        ({"status": ["Pending"]}, "status"),
        ({"spec": 1}, "spec"),
        ({"spec": {"schedulerName": ["policysched"], "containers": []}}, r"spec\.schedulerName"),
        ({"spec": {"schedulingGates": ["a"], "containers": []}}, r"spec\.schedulingGates"),
        ({"spec": {"nodeName": {}, "containers": []}}, r"spec\.nodeName"),
    ],
)
def test_why_refuses_a_malformed_pod(made: Object, field: str) -> None:
    with pytest.raises(UsageError, match=rf'pod "web": {field}'):
        policysched.why([node(), {**pod(), **made}], "web")


def test_why_refuses_names_that_the_cluster_does_not_have() -> None:
    with pytest.raises(UsageError, match=r"pod default/wen is not in the cluster, which has 1 pod; .*default/web"):
        policysched.why([node(), pod()], "wen")
    with pytest.raises(UsageError, match=r"node n2 is not in the cluster, which has 1 node"):
        policysched.why([node(), pod()], "web", "n2")


def test_why_tells_what_turns_a_pod_away_before_nodes_are_looked_at() -> None:
    claimed = [{"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}]
    told = policysched.why([node(), pod(volumes=claimed)], "web")
    assert told.summary == 'pod default/web does not fit the only node: persistentvolumeclaim "gone" not found'
    assert [one.text for one in told.groups[0].repairs] == ["without volume data (claim gone)"]


def test_why_leaves_the_cluster_without_nodes_to_one_sentence() -> None:
    told = policysched.why([pod()], "web")
    assert told.summary == "pod default/web fits none of 0 nodes: no nodes available to schedule pods"
    assert told.to_dict()["nodes"] == 0


def constraint(number: int) -> Object:
    return {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": f"key-{number}"}


def requesting(many: int) -> Object:
    requests = {f"a.b/{number}": 1 for number in range(many)}
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}


@pytest.mark.parametrize(
    "states",
    [
        lambda many: {"nodeSelector": {f"key-{number}": "v" for number in range(many)}},
        requesting,
        lambda many: {"topologySpreadConstraints": [constraint(number) for number in range(many)]},
    ],
    ids=["selector", "resources", "constraints"],
)
def test_effort_for_a_pod_that_states_much_grows_no_faster_than_what_it_states(states: Callable[[int], Object]) -> None:
    def effort(many: int) -> int:
        made = pod()
        objects = [*(node(f"n{number}") for number in range(5)), {**made, "spec": {**made["spec"], **states(many)}}]
        return calls(lambda: policysched.why(objects, "web"))

    effort(10)
    assert effort(400) < 5 * effort(100)


def test_why_that_is_interrupted_tells_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [
        node("a", labels={"disk": "hdd"}), node("b", labels=SSD, spec={"taints": [TAINT]}), pod("web", nodeSelector=SSD)
    ]  # fmt: skip
    feasible, asked = VariantEvaluator.feasible, []

    def interrupted(self: VariantEvaluator, *given: Any) -> Any:
        asked.append(given)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return feasible(self, *given)

    monkeypatch.setattr(VariantEvaluator, "feasible", interrupted)
    told = policysched.why(objects, "web")
    assert (told.interrupted, told.to_dict()["interrupted"]) == (True, True)
    assert [len(one.repairs) for one in told.groups] == [1, 0]
    assert told.notes[-1] == "interrupted: not all fixes and weights were tried"


def test_place_of_a_pod_is_set_against_where_it_would_go() -> None:
    objects = [
        node("n1"), node("n2"), node("n3"), bound("web", "n1", 1), bound("other", "n1", 2),
    ]  # fmt: skip
    told = [policysched.why(objects, "web", seed=seed) for seed in range(8)]
    assert {one.selected for one in told} == {"n2", "n3"}
    for one in told:
        assert one.comparison is not None
        assert (one.comparison.here, one.comparison.there) == (one.selected, "n1")
        assert f"would go to {one.selected} if recreated: {one.selected} is " in one.summary
