"""Pods with very many entries of one kind that pass the validation of an API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bench.workloads import HOST, ZONE
from policysched.model.decode import decode_pod
from policysched.model.objects import Pod

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
EVERYWHERE: Final[Mapping[str, Any]] = {"labelSelector": {}, "namespaceSelector": {}}
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """A number of entries, and a function that returns a pod spec with as many."""

    count: int
    spec: Callable[[int], Object]


def hostile(spec: Object) -> Pod:
    """Return a pod with a spec, which can also have labels and owner references."""
    containers = [{"name": "c", "image": "i"}]
    metadata = {"name": "p-0", "namespace": "default", "uid": "p-0", "labels": {"app": "w"}}
    metadata |= {key: spec[key] for key in ("labels", "ownerReferences") if key in spec}
    return decode_pod({"metadata": metadata, "spec": {"containers": containers, **spec}})


def _asked(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def _terms(expressions: Iterable[Object], of: str = "matchExpressions") -> Object:
    return _nodes([{of: [one]} for one in expressions])


def _nodes(terms: list[Object]) -> Object:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def _liked(expressions: Iterable[Object]) -> Object:
    weighted = [
        {"weight": 1 + index % 100, "preference": {"matchExpressions": [one]}} for index, one in enumerate(expressions)
    ]
    return {"affinity": {"nodeAffinity": {PREFERRED: weighted}}}


def _peers(kind: str, sort: str, terms: list[Object]) -> Object:
    weighted = [{"weight": 1 + index % 100, "podAffinityTerm": one} for index, one in enumerate(terms)]
    return {"affinity": {kind: {sort: terms if sort == REQUIRED else weighted}}}


def _labelled(key: str, labels: Mapping[str, str], **more: Any) -> Object:
    return {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}, **more}


def _numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def _spread(count: int, action: str) -> Object:
    constraints = [
        {"maxSkew": 1, "whenUnsatisfiable": action, **_labelled(key, {key: "v"})} for key in _numbered("k", count)
    ]
    return {"topologySpreadConstraints": constraints}


def _preferences(kind: str, key: str, count: int) -> Object:
    terms = [{"topologyKey": key, "labelSelector": {}, "namespaces": [n, "default"]} for n in _numbered("n", count)]
    return _peers(kind, PREFERRED, terms)


def _beside(name: str) -> Object:
    """Return a restartable init container with its own resource."""
    amounts = {f"example.com/{name}": "1"}
    return {"name": name, "image": "i", "restartPolicy": "Always", "resources": {"requests": amounts}}


def _claiming(count: int, claim: str) -> Object:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name in _numbered("v", count)]
    return {"volumes": volumes}


def _images(count: int) -> Object:
    """Return many Ceph RBD volumes, each with its own image and three monitors."""
    images = [{"monitors": ["a", "b", "c"], "pool": "p", "image": image} for image in _numbered("i", count)]
    return {"volumes": [{"name": image["image"], "rbd": image} for image in images]}


SHAPES: Final[Mapping[str, Shape]] = {
    "nodeSelector keys": Shape(100_000, lambda n: {"nodeSelector": dict.fromkeys(_numbered("k", n), "v")}),
    "node affinity terms, unknown keys": Shape(
        10_000, lambda n: _terms(_asked(k, "In", "v") for k in _numbered("k", n))
    ),
    "node affinity terms, zone": Shape(10_000, lambda n: _terms(_asked(ZONE, "In", v, "w") for v in _numbered("v", n))),
    "node affinity terms, Gt": Shape(10_000, lambda n: _terms(_asked(HOST, "Gt", str(i)) for i in range(n))),
    "node affinity requirements": Shape(
        50_000, lambda n: _nodes([{"matchExpressions": [_asked(k, "DoesNotExist") for k in _numbered("k", n)]}])
    ),
    "node affinity requirements, host": Shape(
        50_000, lambda n: _nodes([{"matchExpressions": [_asked(HOST, "NotIn", v) for v in _numbered("v", n)]}])
    ),
    "node affinity values": Shape(100_000, lambda n: _terms([_asked(HOST, "NotIn", *_numbered("v", n))])),
    "matchFields terms": Shape(
        3000, lambda n: _terms((_asked("metadata.name", "In", v) for v in _numbered("node-", n)), "matchFields")
    ),
    "preferred nodes, unknown keys": Shape(5000, lambda n: _liked(_asked(k, "In", "v") for k in _numbered("k", n))),
    "preferred nodes, host": Shape(5000, lambda n: _liked(_asked(HOST, "In", v) for v in _numbered("node-", n))),
    "hard spread constraints": Shape(10_000, lambda n: _spread(n, "DoNotSchedule")),
    "soft spread constraints": Shape(10_000, lambda n: _spread(n, "ScheduleAnyway")),
    "anti-affinity, unknown keys": Shape(
        3000,
        lambda n: _peers("podAntiAffinity", REQUIRED, [{"topologyKey": k, **EVERYWHERE} for k in _numbered("k", n)]),
    ),
    "anti-affinity, zone": Shape(
        3000, lambda n: _peers("podAntiAffinity", REQUIRED, [_labelled(ZONE, {k: "v"}) for k in _numbered("l", n)])
    ),
    "required affinity": Shape(
        3000, lambda n: _peers("podAffinity", REQUIRED, [_labelled(ZONE, {k: "v"}) for k in _numbered("l", n)])
    ),
    "preferred affinity, unknown keys": Shape(
        3000, lambda n: _peers("podAffinity", PREFERRED, [{"topologyKey": k, **EVERYWHERE} for k in _numbered("k", n)])
    ),
    "preferred affinity, zone": Shape(3000, lambda n: _preferences("podAffinity", ZONE, n)),
    "preferred anti-affinity, host": Shape(3000, lambda n: _preferences("podAntiAffinity", HOST, n)),
    "namespaces of a term": Shape(
        20_000,
        lambda n: _peers("podAntiAffinity", REQUIRED, [_labelled(ZONE, {"app": "x"}, namespaces=_numbered("n", n))]),
    ),
    "labels of a term": Shape(
        40_000,
        lambda n: _peers("podAntiAffinity", REQUIRED, [_labelled(ZONE, dict.fromkeys(_numbered("l", n), "v"))]),
    ),
    "labels": Shape(50_000, lambda n: {"labels": dict.fromkeys(_numbered("l", n), "v")}),
    "tolerations": Shape(
        10_000, lambda n: {"tolerations": [{"key": key, "operator": "Exists"} for key in _numbered("t", n)]}
    ),
    "host ports": Shape(
        10_000,
        lambda n: {
            "containers": [
                {"name": "c", "image": "i", "ports": [{"containerPort": i, "hostPort": i} for i in range(1, n + 1)]}
            ]
        },
    ),
    "containers with images": Shape(
        10_000, lambda n: {"containers": [{"name": name, "image": f"r/{name}:1"} for name in _numbered("c", n)]}
    ),
    "owners": Shape(
        10_000,
        lambda n: {
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": o, "uid": o} for o in _numbered("o", n)]
        },
    ),
    "volumes": Shape(10_000, lambda n: {"volumes": [{"name": name, "emptyDir": {}} for name in _numbered("v", n)]}),
    "restartable init containers": Shape(10_000, lambda n: {"initContainers": [_beside(c) for c in _numbered("c", n)]}),
    "init containers behind restartable ones": Shape(
        10_000,
        lambda n: {
            "initContainers": [
                *(_beside(c) for c in _numbered("b", n // 2)),
                *({"name": c, "image": "i"} for c in _numbered("c", n - n // 2)),
            ]
        },
    ),
    "disks": Shape(10_000, _images),
    "one claim": Shape(20_000, lambda n: _claiming(n, "c")),
}
