"""Rules over columns, counters and kept sums say what the reference interpreter says of plain objects, node by node."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Status
from policysched.language import UNKNOWN, interpret
from policysched.model.objects import Container, Pod, ResourceRequirements, Toleration
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from tests.build import pod
from tests.rules.build import compiled, filtering
from tests.rules.reference import Around
from tests.schedule.world import METRICS, World
from tests.schedule.world_objects import GPU, IMAGES, written

CONDITIONS = (
    'node.pods.count(peer.labels["team"] == "a") < 2',
    'node.pods.count(peer.labels["team"] == pod.labels["team"]) < 2',
    'node.pods.any(peer.labels["license"] == "matlab" and peer.namespace != pod.namespace)',
    "not node.pods.any(peer.priority < pod.priority)",
    "node.pods.sum(peer.requests.cpu) > 700m",
    f'node.pods.sum(peer.requests["{GPU}"], peer.qos == "Burstable") > 0',
    "node.pods.sum(peer.requests.memory * 3 / 7, peer.priority >= 10) < 100Mi",
    'node.pods.count(peer.owner_kind == "ReplicaSet" and peer.owner_name != "s") == 1',
    'node.pods.any(peer.priority_class == "high" or peer.service_account != "default")',
    'node.pods.count(peer.namespace_labels["tier"] == pod.namespace_labels["tier"]) > 0',
    'node.pods.any(ends_with(peer.name, "7")) or node.pods.count(peer.name == pod.name) > 0',
    "node.pods.sum(peer.image_bytes) > 900Mi",
    "node.pods.any(peer.requests.cpu > node.free.cpu)",
    'node.pods.count(node.labels["disk"] == "x" and peer.labels["team"] == "b") > 0',
    "node.pods.any(peer.requests.cpu > avg(node.requested.cpu))",
    "node.pods.count(peer.priority > cluster.nodes) < 2",
    'sum(node.pods.count(peer.labels["license"] == "matlab")) < 7',
    'sum(node.pods.count(peer.labels["team"] == pod.labels["team"])) by node.labels["zone"] < 3',
    'avg(node.requested.cpu) by node.labels["zone"] > 600m',
    "node.free.cpu >= avg(node.free.cpu)",
    'count(node.ready and not node.cordoned) by node.labels["zone"] >= 2',
    "min(node.age) < 1min and node.age <= max(node.age)",
    'sum(number(node.labels["cores"]) * 1.1) by node.labels["disk"] > 20',
    'max(sum(node.requested.cpu) by node.labels["zone"]) > 2',
    "sum(node.cached_image_bytes) > 1Gi",
    'count(node.labels["zone"] == pod.labels["team"] or node.age > pod.age) > 3',
    "avg(metrics.load) > 50% or metrics.load < 90%",
    "(metrics.heat < 1) ?? node.ready",
    "metrics.cores > 200m",
    "node.age > 5min or node.age == 0s",
    'clock("22:00", "06:00") or node.labels["disk"] != "x"',
    'hour("Europe/Berlin") < 12 and node.ready',
    'weekday() in ["mon", "tue", "wed"] or node.free.cpu > 2',
    "pod.age > 2min or node.age > pod.age",
    "if(hour() > 11, sum(node.pods.sum(peer.requests.cpu)) > 3, cluster.pods > 5)",
    "node.cached_image_bytes >= pod.image_bytes / 2",
    'node.free[concat("x.io/", pod.labels["device"])] >= 1',
    'node.labels[pod.labels["device"]] == "x" or node.annotations["rack"] == "r"',
    'node.conditions["DiskPressure"] != "True"',
    'node.conditions["Ready"] == "True" and node.ready',
    'node.conditions[pod.labels["device"]] in ["True", "Unknown"]',
    'count(node.conditions["DiskPressure"] == "False") by node.labels["zone"] > 1',
    'node.taints.value("old") == "x"',
    'node.taints.effect("spot") == "NoExecute" or node.taints.has_effect("NoExecute")',
    'version(node.kubelet_version) >= version("1.36")',
    'node.container_runtime == "containerd" and version(node.container_runtime_version) > version("1.7")',
    'ends_with(node.addresses["InternalIP"], ".1") or node.os_image == "cos"',
    'contains(node.kernel_version, "rt")',
    "(node.pods.max(peer.priority) <= pod.priority) ?? true",
    'node.pods.min(peer.requests.cpu, peer.labels["team"] == pod.labels["team"]) < 1',
    'node.pods.all(peer.labels["team"] == "a")',
    'sum(node.pods.max(peer.priority)) by node.labels["zone"] > 20',
    "node.pods.count(peer.age < 1min) > 0",
    "node.pods.max(peer.age) > avg(node.age)",
    'node.pods.any(peer.annotations["batch"] == "yes")',
    'node.pods.count(peer.annotations[pod.labels["device"]] == "yes") == 0',
    'node.pods.any(peer.phase == "Running" and peer.priority > 0)',
    'any(pod.images, item == "i1:latest") or node.labels["disk"] == "x"',
    'node.labels["disk"] in pod.images or pod.containers > 1',
    'pod.tolerations.has("spot") and node.taints.has("spot") or node.ready',
    'pod.tolerations.value("dedicated") == node.labels["disk"]',
    "pod.limits.cpu <= node.free.cpu",
    'node.pods.count(peer.requests.cpu / 1000m > pod.limits[pod.labels["device"]]) > 0',
)
METRIC_FIELDS = [
    {"name": "load", "query": "load", "maxAge": "1min"},
    {"name": "heat", "query": "heat", "maxAge": "30s"},
    {"name": "cores", "query": "load", "unit": "cpu", "maxAge": "10min"},
]


WAITS = {"every node": "waits"}
TOLERATIONS = [Toleration(key="spot", operator="Exists"), Toleration(key="dedicated", value="x")]
LIMITED = Container(name="c", resources=ResourceRequirements(requests={"cpu": "1"}, limits={"cpu": "1"}))


def policies() -> list[CompiledPolicy]:
    return [
        compiled(f"p{number}", filters=filtering(text), metrics=METRIC_FIELDS) for number, text in enumerate(CONDITIONS)
    ]


def wanted(now: float) -> list[Pod]:
    made = [
        pod("plain", image="i1"),
        pod("p7", labels={"team": "a", "device": "gpu"}, priority=5, namespace="a", requests={"cpu": 1}),
        pod("other", labels={"team": "b", "device": "disk"}, image="i3:latest", namespace="b"),
        pod("limited", labels={"device": "cpu"}, tolerations=TOLERATIONS, containers=[LIMITED]),
    ]
    ages = (0, 125, 3000, 0)
    return [
        replace(one, metadata=replace(one.metadata, creation_timestamp=written(now - later)))
        for one, later in zip(made, ages, strict=True)
    ]


def sizes(world: World) -> dict[str, int]:
    return {image: world.cluster.images.total(image) or 0 for image in IMAGES}


def expected(world: World, of: Pod, made: list[CompiledPolicy]) -> dict[Any, dict[str, Any]]:
    """By policy and node whether the rule holds: true, false, or unknown."""
    samples = {key: world.answers[key].samples or {} for key in METRICS if key in world.answers}
    namespaces = {name: one.metadata.labels for name, one in world.namespaces.items()}
    placed = [(held, on or held.spec.node_name) for held, on in world.pods.values()]
    around = Around(of, list(world.nodes.values()), placed, sizes(world), world.now, namespaces, samples)
    views = around.views()
    return {
        one.key: WAITS
        if waits(one, of, around)
        else {view.node.metadata.name: interpret(one.filters[0].require, view) for view in views}
        for one in made
    }


def waits(policy: CompiledPolicy, of: Pod, around: Around) -> bool:
    """Whether the rule reads labels of a namespace that is not known."""
    read = {item.root for item in policy.filters[0].require.inputs if item.path[0] == "namespace_labels"}
    pods = [of] * ("pod" in read) + [one for one, _ in around.placed] * ("peer" in read)
    return any(one.metadata.namespace not in around.namespaces for one in pods)


def found(world: World, of: Pod, plugins: PolicySet) -> dict[Any, dict[str, Any]]:
    cluster = world.cluster
    answers: dict[Any, dict[str, Any]] = {}
    rows = slice(0, cluster.nodes.size)
    for one in plugins.active:
        matrix = one.filter_matrix(of, cluster)
        assert matrix is not None
        if isinstance(matrix, Status):
            answers[one.policy.key] = WAITS
            continue
        [codes] = matrix.evaluate(rows)
        [(rule, _)] = matrix.by_rule(0, rows)
        answers[one.policy.key] = {
            name: UNKNOWN if codes[row] and rule.is_unknown(int(codes[row])) else not codes[row]
            for name, row in cluster.nodes.row_of.items()
            if cluster.nodes.present.data[row]
        }
    return answers


@pytest.mark.parametrize("seed", range(4))
def test_rules_over_columns_say_what_the_reference_says(seed: int) -> None:
    world = World(seed, 12)
    chance = random.Random(seed)
    made = policies()
    plugins = PolicySet.of(made)
    for number in range(240):
        world.step()
        if number % 12 == 0:
            for of in wanted(world.now + chance.choice((0, -7, 30))):
                assert found(world, of, plugins) == expected(world, of, made)
