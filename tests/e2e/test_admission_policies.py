"""Admission policies of `policysched translate` on a real API server: no pod loses a node that policies allow."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import pytest

import policysched
from policysched.app.translate.admission_policies import FilterAdmission, admission_policies, translated_cluster
from policysched.model.kinds import POLICIES
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.compile.policy import CompiledPolicy
from tests.e2e.objects import NAME, Json, node, pod, policy
from tests.e2e.server import Server
from tests.e2e.test_webhook import kubectl
from tests.e2e.waiting import until

pytestmark = pytest.mark.controlplane
SEED: Final = 20261130
CASES: Final = 60
PODS: Final = 6
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PATH: Final = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
OF_PODS: Final = (
    'pod.labels["x"] == "a"', 'pod.labels["x"] != "a"', 'pod.labels["x"] in ["a", "b\\"\\\\"]', 'has(pod.labels["y"])',
    'pod.labels["y"] not in ["a"]', 'pod.labels["x"] ?? "b" == "b"', '"a" == pod.annotations["x"] ?? "a"',
    'pod.namespace == "default"', 'pod.namespace_labels["kubernetes.io/metadata.name"] == "default"',
    'pod.service_account != "default"', 'has(pod.priority_class)', "pod.priority >= 5", "3 > pod.priority",
    "pod.requests.cpu > 1", 'pod.name == "p"', 'pod.labels["x"] == pod.labels["y"]', "true", "false",
)  # fmt: skip
OF_NODES: Final = (
    'node.labels["x"] == "a"', 'node.labels["x"] != "a"', 'node.labels["y"] in ["a", "b"]', 'has(node.labels["x"])',
    'node.labels["x"] ?? "b" == "b"', 'node.name == "n1"', 'node.name != "n2"', 'node.zone == "a"', "node.ready",
    'node.labels["x"] == pod.labels["x"]', 'pod.labels["y"] == node.labels["y"]', 'node.zone == pod.namespace',
    'node.labels["x"] == pod.annotations["x"]', "node.free.cpu >= 2", 'number(node.labels["y"]) > 1',
)  # fmt: skip
NODES: Final = [
    node(f"n{number}", cpu=str(1 + number % 3), labels={key: value for key, value in labels.items() if value})
    for number, labels in enumerate(
        {"x": x, "y": y, "topology.kubernetes.io/zone": zone}
        for x in ("", "a", "b")
        for y in ("", "a", "3")
        for zone in ("", "a")
    )
]


LAST: Final = pod("p", labels={"case": "last"})
"""A pod of the admission policy that is created last."""


def condition(rng: random.Random, leaves: Sequence[str], depth: int = 2) -> str:
    """Draw a condition."""
    if not depth or rng.random() < 0.3:
        return f"({rng.choice(leaves)})"
    parts = [condition(rng, leaves, depth - 1) for _ in range(3)]
    return rng.choice([
        f"({parts[0]} and {parts[1]})", f"({parts[0]} or {parts[1]})", f"(not {parts[0]})",
        f"({parts[0]} ?? {parts[1]})", f"if({', '.join(parts)})",
    ])  # fmt: skip


def drawn_policy(rng: random.Random, number: int) -> Json:
    """Draw a policy for the pods of a case; every other policy has only conditions that can be expressed."""
    of_nodes, of_pods = (OF_NODES[:8], OF_PODS[:13]) if number % 2 else (OF_NODES, OF_PODS)
    filters = []
    for rule in range(rng.randint(1, 2)):
        parts = [condition(rng, of_nodes) for _ in range(rng.randint(1, 2))]
        when = {"when": condition(rng, of_pods)} if rng.random() < 0.5 else {}
        filters.append({"name": f"r{rule}", "require": " and ".join(parts), **when})
    more = {"appliesTo": condition(rng, of_pods)} if rng.random() < 0.5 else {}
    return policy(f"case-{number}", filters=filters, podSelector={"matchLabels": {"case": f"c{number}"}}, **more)


def own_affinity(rng: random.Random) -> Json:
    """Draw the affinity of a pod: none, or terms, of which some match no node."""
    expressions = [
        [{"key": "x", "operator": "In", "values": ["a"]}],
        [{"key": "y", "operator": "Exists"}],
        [],
    ]
    terms = [{"matchExpressions": one} if one else {} for one in rng.choices(expressions, k=rng.randint(1, 2))]
    preferred: Json = {"preferredDuringSchedulingIgnoredDuringExecution": []}
    return rng.choice([
        {}, {"affinity": {}}, {"affinity": {"podAntiAffinity": {}}}, {"affinity": {"nodeAffinity": preferred}},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}},
    ])  # fmt: skip


def drawn_pod(rng: random.Random, number: int) -> Json:
    """Draw a pod of a case."""
    labels = {key: value for key in ("x", "y") if (value := rng.choice(("", "a", "b", "3")))}
    made = pod("p", labels=labels | {"case": f"c{number}"}, **own_affinity(rng))
    if value := rng.choice(("", "a", "not valid!")):
        made["metadata"]["annotations"] = {"x": value}
    return made


def compiled(of: Json) -> CompiledPolicy:
    found = compile_policy(POLICIES.decode(of)).policy
    assert found is not None, of
    return found


async def install(server: Server, admissions: Sequence[FilterAdmission]) -> None:
    """Create admission policies that refuse a pod if they fail, and wait until they act."""
    last = policy("last", filters=[{"name": "r", "require": 'node.labels["last"] == "yes"'}])
    sentinel = last | {"spec": last["spec"] | {"podSelector": {"matchLabels": {"case": "last"}}}}
    made = [one.objects for one in (*admissions, *admission_policies([compiled(sentinel)], [NAME])) if one.objects]
    for admission, _ in made:
        await server.call("POST", PATH, admission | {"spec": admission["spec"] | {"failurePolicy": "Fail"}})
    for _, binding in made:
        await server.call("POST", f"{PATH.removesuffix('ies')}ybindings", binding)
    await until(lambda: admitted(server, LAST), lambda found: "affinity" in found["spec"])


async def admitted(server: Server, of: Json) -> Json:
    """Return a pod as the API server would store it."""
    found: Json = await server.call("POST", "/api/v1/namespaces/default/pods?dryRun=All", of)
    return found


def stripped(made: Json) -> Json:
    """Return an admitted pod as a new pod with the same affinity."""
    affinity = {"affinity": made["spec"]["affinity"]}
    metadata = {key: made["metadata"][key] for key in ("name", "labels", "annotations") if key in made["metadata"]}
    return pod("p") | {"metadata": metadata, "spec": pod("p")["spec"] | affinity}


async def remove(server: Server) -> None:
    """Delete the admission policies, and wait until they no longer act."""
    for path in (PATH, f"{PATH.removesuffix('ies')}ybindings"):
        await server.call("DELETE", f"{path}?labelSelector=policysched.io/translated")
    await until(lambda: admitted(server, LAST), lambda found: "affinity" not in found["spec"])


def feasible(of: Json, *policies: Json) -> set[str]:
    """Return the nodes that take a pod."""
    spec = {key: value for key, value in of["spec"].items() if key in {"affinity", "containers", "schedulerName"}}
    metadata = {key: of["metadata"].get(key, {}) for key in ("labels", "annotations")} | {"name": "p"}
    wanted = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    labels = {"kubernetes.io/metadata.name": "default"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}
    record = policysched.dry_run([*NODES, space], wanted, policies).to_dict()
    return set(record.get("total", {}))


async def test_affinity_allows_what_the_policy_allows_and_nothing_that_the_pod_excludes(real_server: Server) -> None:
    rng = random.Random(SEED)
    policies = [drawn_policy(rng, number) for number in range(CASES)]
    admissions = [[*admission_policies([compiled(one)], [NAME])] for one in policies]
    narrowed = exact = 0
    try:
        await install(real_server, [one for several in admissions for one in several])
        for number, (of, several) in enumerate(zip(policies, admissions, strict=True)):
            for _ in range(PODS):
                wanted = drawn_pod(rng, number)
                made = await admitted(real_server, wanted)
                own, allowed, wished = feasible(wanted), feasible(made), feasible(wanted, of)
                assert wished <= allowed <= own, (of["spec"], wanted, made["spec"].get("affinity"))
                narrowed += allowed < own
                if "affinity" in made["spec"]:
                    again = await admitted(real_server, stripped(made))
                    assert again["spec"]["affinity"] == made["spec"]["affinity"]
                if not any(one.not_expressed for one in several):
                    assert allowed == wished, (of["spec"], wanted, made["spec"].get("affinity"))
                    exact += 1
    finally:
        await remove(real_server)
    assert narrowed > CASES
    assert exact > CASES


POOL: Final = policy(
    "pool",
    filters=[{"name": "r", "require": 'node.labels["pool"] == pod.labels["team"]'}],
    appliesTo="pod.priority < 5",
)
TERM: Final = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["red"]}]}


async def test_only_pods_of_the_scheduler_that_it_is_to_place_are_changed(real_server: Server) -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    created = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await real_server.call("POST", created, high)
    cases: list[tuple[Json, list[Json]]] = [
        ({}, [TERM]),
        ({"scheduler": "default-scheduler"}, []),
        ({"nodeName": "n1"}, []),
        ({"priorityClassName": "system-cluster-critical", "namespace": "kube-system"}, []),
        ({"priorityClassName": "high"}, []),
    ]
    try:
        await install(real_server, [*admission_policies([compiled(POOL)], [NAME])])
        for spec, terms in cases:
            of = pod("p", labels={"team": "red"}, **spec)
            made = await real_server.call(
                "POST", f"/api/v1/namespaces/{of['metadata']['namespace']}/pods?dryRun=All", of
            )
            found = (
                made["spec"].get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", [])
            )
            assert found == terms, spec
    finally:
        await remove(real_server)
        await real_server.call("DELETE", f"{created}/high")


async def test_terms_beyond_the_limit_are_not_added(real_server: Server) -> None:
    either = policy("either", filters=[{"name": "r", "require": 'node.labels["a"] == "x" or node.labels["b"] == "x"'}])
    try:
        await install(real_server, [*admission_policies([compiled(either)], [NAME])])
        for count, expected in ((32, 64), (33, 33)):
            own = [
                {"matchExpressions": [{"key": "disk", "operator": "In", "values": [str(number)]}]}
                for number in range(count)
            ]
            of = pod("p", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": own}}})
            made = await admitted(real_server, of)
            assert len(made["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]) == expected
    finally:
        await remove(real_server)


async def test_printed_list_is_applied_and_deleted_by_kubectl(real_server: Server) -> None:
    items = [obj for one in translated_cluster([], [POOL], None) for obj in one.objects]
    wanted = pod("p", labels={"team": "red"})
    said = await kubectl(real_server, "apply", of={"apiVersion": "v1", "kind": "List", "items": items})
    assert said.splitlines() == [
        f"mutatingadmissionpolic{ending}.admissionregistration.k8s.io/pool.r.policysched.io created"
        for ending in ("y", "ybinding")
    ]
    made = await until(lambda: admitted(real_server, wanted), lambda found: "affinity" in found["spec"])
    assert made["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == [TERM]
    await remove(real_server)
    await until(lambda: admitted(real_server, wanted), lambda found: "affinity" not in found["spec"])
