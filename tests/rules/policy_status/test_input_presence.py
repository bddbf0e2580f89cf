"""What nodes have of what policies read: counts, warnings about what is on none, and when they are told anew."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Cluster, MetricAnswer, MetricKey, Sample
from policysched.model.objects import Metadata, Namespace
from policysched.model.policy import PolicyKey
from policysched.rules.policy_set.store import PolicyStore
from policysched.rules.policy_status import input_presence
from policysched.rules.policy_status.input_presence import (
    MOST_COMPARED,
    CoverageReports,
    InputCoverage,
    absent,
    count_inputs,
)
from tests.build import cluster, node
from tests.rules.build import Spec, compiled, filtering, policy, scoring
from tests.rules.policy_set.test_store import apply

GPU = "nvidia.com/gpu"
LOAD = {"name": "load", "query": "up"}


def around() -> Cluster:
    zoned = {"topology.kubernetes.io/zone": "zone-a"}
    made = cluster(
        node(
            "n1",
            labels={"gpu-model": "a100", "disk": "ssd", "price": "$0.05", "cores": "4", **zoned},
            allocatable={GPU: 2},
        ),
        node("n2", labels={"disk": "hdd", "price": "0.1", "cores": "8"}, allocatable={GPU: 0}),
        node("n3"),
    )
    third = made.nodes.nodes[2]
    assert third is not None
    made.set_node(replace(third, metadata=replace(third.metadata, annotations={"rack": "r1"})))
    made.set_node(node("gone", labels={"old": "x"}))
    made.remove_node("gone")
    return made


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('node.labels["disk"] == "ssd"', [InputCoverage('node.labels["disk"]', 2, 3)]),
        ('node.annotations["rack"] == "r1"', [InputCoverage('node.annotations["rack"]', 1, 3)]),
        ('node.conditions["Gone"] != "True"', [InputCoverage('node.conditions["Gone"]', 0, 3)]),
        ('node.kernel_version == "6.8"', [InputCoverage("node.kernel_version", 0, 3)]),
        ('node.addresses["InternalIP"] != "a"', [InputCoverage('node.addresses["InternalIP"]', 0, 3)]),
        ('node.zone == "zone-a"', [InputCoverage("node.zone", 1, 3)]),
        (f'node.free["{GPU}"] > 0', [InputCoverage(f'node.free["{GPU}"]', 1, 3)]),
        ('node.labels["old"] == "x"', [InputCoverage('node.labels["old"]', 0, 3)]),
        ("metrics.load < 1 or node.ready", [InputCoverage("metrics.load", 2, 3)]),
        ("node.free.cpu > 1 and node.ready and not node.cordoned", []),
        ('node.allocatable["cpu"] > 1', []),
        ('node.labels[pod.name] == "x" and pod.labels["a"] == "b"', [InputCoverage('pod.labels["a"]', 0, 0)][:0]),
    ],
)
def test_nodes_that_have_an_input_are_counted(text: str, found: list[InputCoverage]) -> None:
    made = around()
    made.metrics.take(
        MetricAnswer(MetricKey("up", "node"), {"n1": Sample(1, 0), "n3": Sample(2, 0), "x": Sample(3, 0)})
    )
    assert list(count_inputs(compiled(filters=filtering(text), metrics=[LOAD]), made).inputs) == found


WARNINGS: list[tuple[Spec, list[tuple[str, int, int, str, str | None]]]] = [
    (
        {"filters": filtering('node.ready and node.labels["gpu_model"] == "a100"')},
        [("spec.filters[0].require", 16, 40, '`node.labels["gpu_model"]` is present on no node',
          "did you mean `gpu-model`?")],
    ),
    (
        {"filters": filtering('node.labels["gpu-model"] == "a10"')},
        [("spec.filters[0].require", 29, 34, 'no node has this value of `node.labels["gpu-model"]`',
          "did you mean `a100`?")],
    ),
    (
        {"filters": filtering('"zone-b" == node.zone or node.name in ["n33", "m"]')},
        [("spec.filters[0].require", 1, 9, "no node has this value of `node.zone`", "did you mean `zone-a`?"),
         ("spec.filters[0].require", 39, 51, "no node has this value of `node.name`", "did you mean `n3`?")],
    ),
    (
        {"let": [{"name": "rack", "value": 'node.annotations["racks"]'}], "filters": filtering('rack == "r1"')},
        [("spec.let[0].value", 1, 26, '`node.annotations["racks"]` is present on no node', "did you mean `rack`?")],
    ),
    (
        {"scores": [*scoring(['node.labels["dsik"] == "ssd" → 5', "else → 1"], "a"),
                    *scoring('if(has(node.region), 1, 0)', "b"), *scoring('node.free["nvidia.com/gpus"]', "c")]},
        [("spec.scores[0].cases[0]", 1, 20, '`node.labels["dsik"]` is present on no node', "did you mean `disk`?"),
         ("spec.scores[1].value", 8, 19, "`node.region` is present on no node", None),
         ("spec.scores[2].value", 1, 29, '`node.free["nvidia.com/gpus"]` is present on no node',
          "did you mean `nvidia.com/gpu`?")],
    ),
    (
        {"filters": filtering('node.labels["gpu-model"] in ["a100", "a1OO", "h100"]')},
        [("spec.filters[0].require", 38, 44, 'no node has this value of `node.labels["gpu-model"]`',
          "did you mean `a100`?")],
    ),
    (
        {"filters": filtering('node.labels["gpu-model"] != "a1000" and node.name not in ["n33", "m"]')},
        [("spec.filters[0].require", 29, 36, 'no node has this value of `node.labels["gpu-model"]`',
          "did you mean `a100`?"),
         ("spec.filters[0].require", 59, 64, "no node has this value of `node.name`", "did you mean `n3`?")],
    ),
    (
        {"scores": scoring('number(node.labels["price"]) ?? 0')},
        [("spec.scores[0].value", 8, 28, '`node.labels["price"]` is "$0.05" on node n1, which is not a number',
          "the number is missing there")],
    ),
    (
        {"filters": filtering("metrics.load < 1 or true"), "metrics": [LOAD]},
        [("spec.filters[0].require", 1, 13, "`metrics.load` has no value on any node", None)],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "wanted"), WARNINGS)
def test_what_no_node_has_is_warned_of_at_its_place(spec: Spec, wanted: list[Any]) -> None:
    found = absent(compiled(**spec), around())
    assert [(one.field, one.column, one.end_column, one.message, one.help) for one in found] == wanted
    assert {(one.code, one.severity) for one in found} == {("W0705", "warning")}


@pytest.mark.parametrize(
    ("key", "present", "helps"), [("gpu-model", 1, []), ("gpu_model", 0, ["did you mean `gpu-model`?"])]
)
def test_topology_key_of_placements_is_a_label_that_nodes_should_have(key: str, present: int, helps: list[str]) -> None:
    rules = {"topologyKey": key, "filters": filtering("placement.size > 1")}
    found = count_inputs(compiled(placement=rules), around())
    assert found.inputs == (InputCoverage(f'node.labels["{key}"]', present, 3),)
    warnings = [one for one in found.warnings if one.code == "W0705"]
    assert [one.help for one in warnings] == helps
    assert all((one.field, one.end_column) == ("spec.placement.topologyKey", 10) for one in warnings)


def test_metric_without_values_names_its_problem() -> None:
    made = around()
    made.metrics.take(MetricAnswer(MetricKey("up", "node"), {}, "no value is a finite number"))
    [found] = absent(compiled(filters=filtering("metrics.load < 1 or true"), metrics=[LOAD]), made)
    assert (found.message, found.help) == ("`metrics.load` has no value on any node", "no value is a finite number")


@pytest.mark.parametrize(
    "text",
    [
        'node.labels["disk"] == "ssd"',
        'node.labels["disk"] in ["ssd", "hdd"]',
        'node.labels["gpu-model"] in ["a100", "h100", "b200"]',
        'number(node.labels["cores"]) > 1',
        'node.labels["disk"] != "floppy"',
        'node.labels["disk"] not in ["floppy"]',
        'node.name == "n3" and node.zone == "zone-a"',
        'node.name == pod.labels["wanted"]',
        'pod.labels["nothing"] == "x"',
        'node.labels[concat("a", pod.name)] == "x"',
        'node.free["cpu"] > 1 and node.taints.has("spot")',
    ],
)
def test_what_some_node_has_or_none_need_have_is_no_matter(text: str) -> None:
    assert absent(compiled(filters=filtering(text)), around()) == ()


def test_a_cluster_without_nodes_says_nothing() -> None:
    assert absent(compiled(filters=filtering('node.labels["a"] == "b"')), Cluster()) == ()


LABELLED = {"a": {"team": "vision", "env": "prod"}, "b": {"team": "ads"}}
NO_LABEL, NO_VALUE = "no namespace has the label `{}`", "no namespace has this value of the label `{}`"


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {"appliesTo": 'pod.namespace_labels["tema"] == "ads"'},
            [("spec.appliesTo", 1, 29, NO_LABEL.format("tema"), "did you mean `team`?")],
        ),
        (
            {"filters": filtering("node.ready", when='pod.namespace_labels["team"] == "vison"')},
            [("spec.filters[0].when", 33, 40, NO_VALUE.format("team"), "did you mean `vision`?")],
        ),
        (
            {"scores": scoring("1", when='has(pod.namespace_labels["x"])')},
            [("spec.scores[0].when", 5, 30, NO_LABEL.format("x"), None)],
        ),
        (
            {"filters": filtering('node.pods.count(peer.namespace_labels["tema"] == "ads") < 2')},
            [("spec.filters[0].require", 17, 46, NO_LABEL.format("tema"), "did you mean `team`?")],
        ),
        (
            {"namespaceSelector": {"matchLabels": {"tema": "ads", "env": "prdo"},
                                   "matchExpressions": [{"key": "tier", "operator": "Exists"}]}},
            [("spec.namespaceSelector.matchLabels", 1, 1, NO_LABEL.format("tema"), "did you mean `team`?"),
             ("spec.namespaceSelector.matchLabels", 1, 1, NO_VALUE.format("env"), "did you mean `prod`?"),
             ("spec.namespaceSelector.matchExpressions[0]", 1, 1, NO_LABEL.format("tier"), None)],
        ),
        (
            {"namespaceSelector": {"matchLabels": {"team": "ads"},
                                   "matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["test"]}]}},
            [],
        ),
        ({"appliesTo": 'number(pod.namespace_labels["team"]) > 1 or pod.labels["tema"] == "ads"'}, []),
    ],
)  # fmt: skip
def test_labels_that_no_namespace_has_are_warned_of_without_nodes(spec: dict[str, Any], wanted: list[Any]) -> None:
    made = Cluster()
    assert absent(compiled(**spec), made) == ()
    for name, labels in LABELLED.items():
        made.set_namespace(Namespace(metadata=Metadata(name=name, labels=labels)))
    found = absent(compiled(**spec), made)
    assert [(one.field, one.column, one.end_column, one.message, one.help) for one in found] == wanted
    assert {one.code for one in found} <= {"W0705"}


def test_among_very_many_names_the_near_ones_are_still_found() -> None:
    many = cluster(*(node(f"worker-{number:04}") for number in range(2 * MOST_COMPARED)))
    many.set_node(node("edge-17"))
    [found] = absent(compiled(filters=filtering('node.name == "edge-117"')), many)
    assert found.help == "did you mean `edge-17`?"


@pytest.mark.parametrize(("written", "meant"), [("a100-99", "a100-01"), ("a10-99", "a10-19"), ("a1000-01", "a100-01")])
def test_a_name_with_the_same_start_is_nearer_than_one_with_more_equal_letters(written: str, meant: str) -> None:
    made = cluster(*(node(name) for name in ("a100-01", "a10-01", "a10-19", "t4-99")))
    [found] = absent(compiled(filters=filtering(f'node.name == "{written}"')), made)
    assert found.help == f"did you mean `{meant}`?"


def entry_of(status: Spec | None = None, **spec: Any) -> Any:
    store = PolicyStore()
    apply(store, policy(status=status, **spec))
    return store.get(PolicyKey("p"))


DISK: dict[str, Any] = {"filters": filtering('node.labels["disk"] == "ssd"')}


def test_only_a_count_that_leaves_or_reaches_0_is_news() -> None:
    made = Cluster()
    reports, entry = CoverageReports(made, "ns/me"), entry_of(**DISK)
    news = []
    for step in (
        lambda: None,
        lambda: made.set_node(node("a")),
        lambda: made.set_node(node("b", labels={"disk": "hdd"})),
        lambda: made.set_node(node("c", labels={"disk": "hdd"})),
        lambda: made.set_node(node("d", labels={"disk": "ssd"})),
        lambda: made.remove_node("d"),
        lambda: (made.remove_node("b"), made.remove_node("c")),
    ):
        step()
        news.append(reports.refresh(entry))
    # The input itself, its warning, the value, the value again, both.
    assert news == [True, True, True, False, True, True, True]
    reports.forget(PolicyKey("p"))
    assert reports.of(PolicyKey("p")).inputs == ()


def test_what_a_status_tells_already_is_no_news_after_a_restart() -> None:
    made = cluster(node("a", labels={"disk": "ssd"}), node("b"), node("c"))
    told = [{"name": 'node.labels["disk"]', "present": 7, "total": 9}]
    for name, present, news in (("ns/me", 7, False), ("ns/other", 7, True), ("ns/me", 0, True)):
        inputs = [{**told[0], "present": present}]
        entry = entry_of({"instances": [{"name": name, "inputs": inputs}]}, **DISK)
        reports = CoverageReports(made, "ns/me")
        assert reports.refresh(entry) is news
        assert reports.of(PolicyKey("p")).inputs == (
            InputCoverage('node.labels["disk"]', 1 if news else 7, 3 if news else 9),
        )


def test_the_trouble_with_a_metric_is_told_and_is_news() -> None:
    made = cluster(node("a"))
    key = MetricKey("up", "node")
    entry = entry_of(filters=filtering("metrics.load < 1 or true"), metrics=[LOAD])
    reports = CoverageReports(made, "ns/me")
    news = []
    for problem in ("", "two series for node a", "two series for node a", ""):
        made.metrics.take(MetricAnswer(key, {"a": Sample(1.0, 0.0)}, problem))
        news.append((reports.refresh(entry), reports.of(PolicyKey("p")).inputs[0].problem))
    two = "two series for node a"
    assert news == [(True, ""), (True, two), (False, two), (True, "")]


def test_a_bounded_number_of_names_of_a_policy_gets_suggestions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_presence, "MOST_SUGGESTIONS", 2)
    made = cluster(node("node-1"))
    filters = [rule for number in range(4) for rule in filtering(f'node.name == "nod-{number}"', f"f{number}")]
    warnings = absent(compiled(filters=filters), made)
    assert [one.help for one in warnings] == ["did you mean `node-1`?"] * 2 + [None] * 2
