"""Objects that a real API server stores and that are expensive for a scheduler.

All objects except policies need only the right to create pods. Sizes are below etcd's limit of 1.5 MiB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
INT64_MAX = 2**63 - 1
DEPTH = 900


@dataclass(frozen=True, slots=True)
class Hostile:
    """One attack: its name, and a function that returns its objects."""

    name: str
    make: Callable[[], list[Object]]
    kind: str = "Pod"
    edits: tuple[str, Callable[[int], Object]] | None = None
    """Path of an object that is edited every 10 ms, and the merge patch of each edit; None: no edits."""

    def objects(self) -> list[Object]:
        """Return the objects."""
        return self.make()


def node(number: int) -> Object:
    """Return an ordinary node: 4 cores, 32 GiB, one of three zones."""
    name = f"node-{number:05}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}", "kubelet": "none"}
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def ordinary(name: str) -> Object:
    """Return an ordinary pod."""
    return pod(name, requests=[{"cpu": "100m", "memory": "100Mi"}])


def pod(
    name: str,
    *,
    requests: list[dict[str, str]] | None = None,
    metadata: Object | None = None,
    **spec: Any,
) -> Object:
    """Return a pod with a container for each of the given requests."""
    containers = [
        {
            "name": f"c{number}",
            "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": one, "limits": limits(one)},
        }
        for number, one in enumerate(requests or [{"cpu": "100m"}])
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}, **(metadata or {})},
        "spec": {"containers": containers, **spec},
    }


def limits(requests: dict[str, str]) -> dict[str, str]:
    """Return the limits that requests for extended resources need."""
    return {name: amount for name, amount in requests.items() if "/" in name}


def placed(one: Object, number: int = 0) -> Object:
    """Set the node of a pod, as the creator of a pod can."""
    one["spec"]["nodeName"] = f"node-{number:05}"
    return one


def affinity(kind: str, form: str, terms: list[Object]) -> Object:
    """Return the affinity of a pod."""
    return {kind: {f"{form}DuringSchedulingIgnoredDuringExecution": terms}}


def extended(count: int) -> dict[str, str]:
    """Return requests for many extended resources that no node has."""
    return {f"example.com/r{number}": "1" for number in range(count)}


def anti_terms(count: int) -> list[Object]:
    """Return anti-affinity terms against ordinary pods, with many topology keys."""
    return [
        {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": f"example.com/key-{number}"}
        for number in range(count)
    ]


def spread(count: int, unsatisfiable: str) -> list[Object]:
    """Return spread constraints with many topology keys."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": f"example.com/key-{number}",
            "whenUnsatisfiable": unsatisfiable,
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        for number in range(count)
    ]


def crowd(count: int) -> list[Object]:
    """Return pods with different labels, each on its own node."""
    return [placed(pod(f"crowd-{n}", metadata={"labels": {"app": f"crowd-{n}"}}), n) for n in range(count)]


def excluding(count: int) -> list[Object]:
    """Return many preferred affinity terms, each for all pods but one."""
    selectors = (
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [f"no-{n}"]}]} for n in range(count)
    )
    return [
        {"weight": 1, "podAffinityTerm": {"labelSelector": one, "topologyKey": "kubernetes.io/hostname"}}
        for one in selectors
    ]


def fields(count: int) -> Object:
    """Return a required node affinity for many absent nodes by name."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"absent-{number}"]}]}
        for number in range(count)
    ]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def preferred_nodes(count: int) -> Object:
    """Return a node affinity with many preferred terms."""
    terms = [
        {"weight": 1, "preference": {"matchExpressions": [{"key": f"k{number}", "operator": "DoesNotExist"}]}}
        for number in range(count)
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def deep() -> Object:
    """Return metadata with a deeply nested `managedFields` entry."""
    owned: Object = {"f:a": {}}
    for _ in range(DEPTH):
        owned = {"f:a": owned}
    entry = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": owned}
    return {"managedFields": [entry]}


def policy(spec: Object) -> list[Object]:
    """Return a policy."""
    head = {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": {"name": "hostile"}}
    return [head | {"spec": spec}]


def doubling() -> list[Object]:
    """Return a policy that doubles the length of a text forty times."""
    first = {"name": "a0", "value": 'concat(pod.name, "aaaaaaaa")'}
    lets = [first] + [{"name": f"a{n + 1}", "value": f"concat(a{n}, a{n})"} for n in range(40)]
    return policy({"let": lets, "filters": [{"name": "f", "require": 'a40 != "x"'}]})


def many_cases() -> list[Object]:
    """Return a policy with a score of many long cases."""
    listed = ", ".join(f'"name-{number:04}"' for number in range(250))
    cases = [f'node.name in [{listed}] and node.name != "n{number}" → 50' for number in range(256)]
    return policy({"scores": [{"name": "s", "cases": cases}]})


def several(count: int, make: Callable[[int], Object]) -> list[Object]:
    """Return several pods."""
    return [make(number) for number in range(count)]


WRAPPING = [{"memory": "5Ei"}, {"memory": "5Ei"}]
BIG = [{"memory": "4Ei"}, {"memory": "4Ei"}]
MOST = [{"memory": str(INT64_MAX)}, {"memory": "1Gi", "cpu": "1"}]
HOSTILE = (
    Hostile("none", list),
    Hostile("two containers of 4Ei", lambda: [placed(pod("big-0", requests=BIG)), pod("big-1", requests=BIG)]),
    Hostile("int64 max and more", lambda: [placed(pod("most-0", requests=MOST)), pod("most-1", requests=MOST)]),
    Hostile(
        "two containers of 5Ei", lambda: [placed(pod("wrap-0", requests=WRAPPING)), pod("wrap-1", requests=WRAPPING)]
    ),
    Hostile("memory: 1e400", lambda: [pod("huge", requests=[{"memory": "1e400"}])]),
    Hostile(
        "5,000 extended resources",
        lambda: [placed(pod("many-0", requests=[extended(5000)])), pod("many-1", requests=[extended(5000)])],
    ),
    Hostile("20,000 selector keys", lambda: [pod("keys", nodeSelector={f"k{n}": "v" for n in range(20_000)})]),
    Hostile(
        "2,000 hard spread constraints", lambda: [pod("hard", topologySpreadConstraints=spread(2000, "DoNotSchedule"))]
    ),
    Hostile(
        "2,000 soft spread constraints", lambda: [pod("soft", topologySpreadConstraints=spread(2000, "ScheduleAnyway"))]
    ),
    Hostile(
        "3,000 anti-affinity terms, placed",
        lambda: [placed(pod("anti", affinity=affinity("podAntiAffinity", "required", anti_terms(3000))))],
    ),
    Hostile(
        "3,000 anti-affinity terms, pending",
        lambda: [pod("anti", affinity=affinity("podAntiAffinity", "required", anti_terms(3000)))],
    ),
    Hostile(
        "3,000 preferred affinity terms, placed",
        lambda: [
            placed(
                pod(
                    "likes",
                    affinity=affinity(
                        "podAffinity",
                        "preferred",
                        [{"weight": 1, "podAffinityTerm": term} for term in anti_terms(3000)],
                    ),
                )
            )
        ],
    ),
    Hostile(
        "3,000 terms among 1,000 pods that differ",
        lambda: [*crowd(1000), pod("excludes", affinity=affinity("podAffinity", "preferred", excluding(3000)))],
    ),
    Hostile("3,000 matchFields terms", lambda: [pod("fields", affinity=fields(3000))]),
    Hostile("5,000 preferred node terms", lambda: [pod("prefers", affinity=preferred_nodes(5000))]),
    Hostile(
        "10,000 tolerations",
        lambda: [pod("tolerant", tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(10_000)])],
    ),
    Hostile("managedFields 900 deep", lambda: [pod("deep", metadata=deep())]),
    Hostile("policy: a text doubled 40 times", doubling, "SchedulingPolicy"),
    Hostile("policy: 256 cases of 3.8 KB", many_cases, "SchedulingPolicy"),
)
