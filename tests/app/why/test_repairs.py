"""What `why` names is true: each repair makes the pod fit, each weight turns the order; asked of dry-runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import policysched
from policysched.app.why.comparison import POLICY
from policysched.app.why.results import NodeComparison, Repair, State
from tests.app.dry_runs import Object, node, pod, policy
from tests.app.why.test_why import bound

CASES = int(os.environ.get("POLICYSCHED_CASES", "40"))
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
LABELS = st.fixed_dictionaries({}, optional={"disk": st.sampled_from("ab"), "zone": st.sampled_from("abc")})
TAINTS = st.lists(
    st.builds(
        lambda key, value, effect: {"key": key, "effect": effect, **({"value": value} if value else {})},
        st.sampled_from(("gpu", "spot")), st.sampled_from(("", "x")), st.sampled_from(EFFECTS),
    ),
    max_size=2, unique_by=lambda one: (one["key"], one["effect"]),
)  # fmt: skip
REQUIREMENTS = st.one_of(
    st.builds(lambda key, values: {"key": key, "operator": "In", "values": values},
              st.sampled_from(("disk", "zone")), st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True)),
    st.builds(lambda key, operator: {"key": key, "operator": operator},
              st.sampled_from(("disk", "zone")), st.sampled_from(("Exists", "DoesNotExist"))),
)  # fmt: skip
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
          "labelSelector": TERM["labelSelector"]}  # fmt: skip
RULES = ('node.labels["zone"] == "a"', "node.free.cpu >= 2", 'not node.cordoned and node.labels["disk"] == "b"')


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Object:
    made = node(name, labels=draw(LABELS))
    made["spec"] = {"taints": draw(TAINTS), "unschedulable": draw(st.booleans()) and draw(st.booleans())}
    made["status"]["allocatable"] = {
        "cpu": f"{draw(st.integers(5, 40))}00m", "memory": f"{draw(st.integers(1, 4))}Gi",
        "pods": str(draw(st.integers(1, 4))),
    }  # fmt: skip
    return made


@st.composite
def wanted(draw: st.DrawFn) -> Object:
    terms = [
        {"matchExpressions": one} for one in draw(st.lists(st.lists(REQUIREMENTS, min_size=1, max_size=2), max_size=2))
    ]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}} if terms else {}
    kind = draw(st.sampled_from(("podAffinity", "podAntiAffinity", "")))
    made = pod(
        "web", f"{draw(st.integers(1, 60))}00m", priority=draw(st.sampled_from((0, 10))),
        nodeSelector=draw(LABELS), affinity=affinity | ({kind: {REQUIRED: [TERM]}} if kind else {}),
        topologySpreadConstraints=[SPREAD] if draw(st.booleans()) else [],
    )  # fmt: skip
    container = made["spec"]["containers"][0]
    container["resources"]["requests"]["memory"] = f"{draw(st.integers(1, 5))}Gi"
    if draw(st.booleans()):
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    made["metadata"]["labels"] = {"app": draw(st.sampled_from("ab"))}
    return made


@st.composite
def clusters(draw: st.DrawFn) -> list[Object]:
    names = [f"n{number}" for number in range(draw(st.integers(1, 5)))]
    made = [draw(nodes(name)) for name in names]
    for number in range(draw(st.integers(0, 4))):
        one = bound(f"p{number}", draw(st.sampled_from(names)), f"{draw(st.integers(1, 20))}00m")
        one["metadata"]["labels"] = {"app": draw(st.sampled_from("ab"))}
        one["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": draw(st.sampled_from((80, 81)))}]
        made.append(one)
    rules = draw(st.lists(st.sampled_from(RULES), max_size=2, unique=True))
    if rules:
        filters = [{"name": f"r{number}", "require": text} for number, text in enumerate(rules)]
        made.append(policy("p", filters=filters))
    scores = draw(st.lists(st.sampled_from(("node.free.cpu / 100", "20", 'number(node.labels["x"])')), max_size=2))
    if scores:
        rows = [{"name": f"s{number}", "cases": [f'node.name == "n{number}" -> 100', "else -> 10"]}
                for number, _ in enumerate(scores)]  # fmt: skip
        made.append(policy("s", scores=rows, weight=draw(st.integers(1, 3))))
    return [*made, draw(wanted())]


def is_named(one: Object, kind: str, name: str) -> bool:
    return bool(one["kind"] == kind and one["metadata"]["name"] == name)


def repaired(objects: list[Object], made: Mapping[str, Any]) -> list[Object]:
    """Make a repair by hand."""
    left = [one for one in objects if f"default/{one['metadata']['name']}" not in made.get("victims", ())]
    if "pod" in made:
        left = [one for one in left if not is_named(one, "Pod", "web")] + [made["pod"]]
    if "node" in made:
        name = made["node"]["metadata"]["name"]
        left = [made["node"] if is_named(one, "Node", name) else one for one in left]
    for rule in made.get("rules", ()):
        key, _, name = rule.partition("/")
        for place, one in enumerate(left):
            if is_named(one, "SchedulingPolicy", key):
                kept = [row for row in one["spec"]["filters"] if row["name"] != name]
                left[place] = {**one, "spec": {**one["spec"], "filters": kept}}
    return left


def rejected(objects: list[Object]) -> Mapping[str, Any]:
    """Return the nodes that a pod does not fit."""
    wanted = next(one for one in objects if is_named(one, "Pod", "web"))
    record = policysched.dry_run(objects, wanted, seed=1).to_dict()
    if "preFilter" in record:
        return {one["metadata"]["name"]: record["preFilter"] for one in objects if one["kind"] == "Node"}
    found: Mapping[str, Any] = record.get("rejected", {})
    return found


@settings(max_examples=CASES)
@given(clusters())
def test_repairs_that_why_names_are_true_when_made(objects: list[Object]) -> None:
    told = policysched.why(objects, "web", seed=1)
    out = rejected(objects)
    if told.state is State.UNSCHEDULABLE:
        assert sum(one.nodes for one in told.groups) + told.more_nodes == len(out)
    named: list[Repair] = [one for group in told.groups for one in group.repairs]
    if told.preemption is not None:
        named.append(told.preemption)
    for one in named:
        still = rejected(repaired(objects, one.made))
        assert one.example not in still, one.text
        assert one.nodes <= len(out) - len(out.keys() & still.keys()), one.text


@settings(max_examples=CASES)
@given(clusters())
def test_groups_hold_every_condition_that_keeps_a_node_out(objects: list[Object]) -> None:
    told = policysched.why(objects, "web", seed=1)
    for condition in told.conditions:
        assert condition.rejects + condition.leaves == told.nodes
        assert condition.alone <= condition.rejects
    if told.groups and not told.more_groups:
        assert sum(one.alone for one in told.conditions) == sum(
            one.nodes for one in told.groups if len(one.lacks) == 1
        )  # fmt: skip


def weighed(
    compared: NodeComparison, plugin: str, weight: int, objects: list[Object]
) -> tuple[list[Object], Object | None]:
    """Set a weight by hand."""
    if plugin.startswith(POLICY):
        key = plugin.removeprefix(POLICY)
        return [
            {**one, "spec": {**one["spec"], "weight": weight}} if is_named(one, "SchedulingPolicy", key) else one
            for one in objects
        ], None
    entry = {"name": plugin, **({"weight": weight} if weight else {})}
    lists = {"disabled": [{"name": plugin}], "enabled": [entry] if weight else []}
    profile = {"schedulerName": "policysched", "plugins": {"score": lists}}
    return objects, {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                     "profiles": [profile]}  # fmt: skip


@settings(max_examples=CASES)
@given(clusters())
def test_weights_that_why_names_turn_the_order(objects: list[Object]) -> None:
    compared = policysched.why(objects, "web", seed=1).comparison
    if compared is None:
        return
    wanted = next(one for one in objects if is_named(one, "Pod", "web"))
    for turn in compared.turns:
        changed, config = weighed(compared, turn.plugin, turn.weight, objects)
        record = policysched.dry_run(changed, wanted, config=config, seed=1).to_dict()
        assert record["best"] == list(turn.selected)
        assert compared.there in record["best"]
