"""Objects of every watched kind, and random changes that no API server should make."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
LABELS = {"app": "m", "zone": "z"}
SELECTOR = {"matchLabels": {"app": "m"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["m", "n"]}]}
RESOURCES = {"requests": {"cpu": "10m", "memory": "1Mi", "x.io/gpu": "1"}, "limits": {"cpu": "20m"}}
TERM = {"labelSelector": SELECTOR, "namespaces": ["m"], "namespaceSelector": {}, "topologyKey": "zone"}
NODE_TERM = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["y"]}], "matchFields": []}
_SOON = "DuringSchedulingIgnoredDuringExecution"


class Raw(bytes):
    """A piece of JSON, or of what is none, as it stands."""


def _deep(opening: bytes, closing: bytes, levels: int) -> Raw:
    return Raw(opening * levels + b"1" + closing * levels)


NASTY: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**31 - 1, -(2**31), 2**63, 2**63 - 1, -(2**63) - 1, 10**23, 1.5, -0.0,
    Raw(b"1e400"), Raw(b"-1e400"), Raw(b"1e-400"), Raw(b"NaN"), Raw(b"Infinity"), Raw(b"9" * 5000), Raw(b"01"),
    Raw(b'"\xff\xfe"'), Raw(b'"\\ud800"'), Raw(b'"\xed\xa0\x80"'), Raw(b'"\x01"'), Raw(b'{"a":1,"a":2}'),
    _deep(b'{"f:a":', b"}", 900), _deep(b"[", b"]", 1000), _deep(b'{"f:a":', b"}", 5000),
    "", "x", "NaN", "1e400", "1e1000000000", "-1e-1000000000", "4Ei", "9223372036854775807", "9223372036854775808",
    "-5", "0.0000000000001", "1" * 400, "1e", "Exists", "Gt", "Frob", "a/b", "../..", "%2e", ".", "\u0000", "\u202e",
    "\u200b", "line\nbreak", "x" * 20_000, "é" * 300, "0000-01-01T00:00:00Z", "99999-12-31T00:00:00Z", "-1",
    "0001-01-01T00:00:00+23:59", "2026-13-45T99:99:99Z", "Succeeded", "Always", "hostile-1",
    [], {}, [None], [[]], [{}], {"": ""}, {"a": None}, {"a": {}}, ["x", "x"], {"cpu": "-1"}, {"pods": "1e30"},
)  # fmt: skip
"""What stands in place of something else."""


def _metadata(name: str, **more: Any) -> Json:
    fields = [{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}}}]
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "m0", "uid": "r", "controller": True}]
    stamp = "2026-01-01T00:00:00Z"
    given = {"labels": dict(LABELS), "annotations": {"a": "b"}, "creationTimestamp": stamp, "generation": 2}
    return {"name": name, "managedFields": fields, "ownerReferences": owners, **given, **more}


def _inside(name: str, **more: Any) -> Json:
    return _metadata(name, namespace="m", **more)


def node(name: str) -> Json:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "40", "ephemeral-storage": "10Gi", "x.io/gpu": "8"}
    status = {
        "capacity": dict(amounts),
        "allocatable": amounts,
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": [{"names": ["i:1", "j:2"], "sizeBytes": 500_000_000}],
        "declaredFeatures": ["RestartAllContainersOnContainerExits"],
    }
    taints = [{"key": "t", "value": "v", "effect": "PreferNoSchedule"}]
    labels = LABELS | {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "z"}
    return {
        "metadata": _metadata(name, labels=labels),
        "spec": {"unschedulable": False, "taints": taints},
        "status": status,
    }


def pod(name: str, scheduler: str = "policysched", on: str = "") -> Json:
    affinity = {
        "nodeAffinity": {
            f"required{_SOON}": {"nodeSelectorTerms": [NODE_TERM]},
            f"preferred{_SOON}": [{"weight": 5, "preference": NODE_TERM}],
        },
        "podAffinity": {f"preferred{_SOON}": [{"weight": 7, "podAffinityTerm": TERM}]},
        "podAntiAffinity": {
            f"required{_SOON}": [TERM | {"labelSelector": {"matchLabels": {"app": "nobody"}}}],
            f"preferred{_SOON}": [{"weight": 3, "podAffinityTerm": TERM}],
        },
    }
    container = {
        "name": "c",
        "image": "i:1",
        "resources": RESOURCES,
        "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "TCP"}],
        "restartPolicyRules": [{"action": "RestartAllContainers"}],
    }
    spread = {"maxSkew": 100, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    volumes = [
        {"name": "v", "persistentVolumeClaim": {"claimName": "m0"}},
        {"name": "e", "ephemeral": {}},
        {"name": "a", "awsElasticBlockStore": {"volumeID": "v1", "partition": 1}},
        {"name": "r", "rbd": {"monitors": ["m"], "image": "i", "pool": "p"}},
        {"name": "d", "azureDisk": {"diskName": "d", "diskURI": "u"}},
    ]
    spec = {
        "schedulerName": scheduler,
        "nodeName": on,
        "priority": 10,
        "priorityClassName": "p",
        "serviceAccountName": "s",
        "nodeSelector": {"zone": "z"},
        "affinity": affinity,
        "tolerations": [{"key": "t", "operator": "Equal", "value": "v", "effect": ""}],
        "topologySpreadConstraints": [spread],
        "containers": [container],
        "initContainers": [container | {"restartPolicy": "Always"}],
        "overhead": {"cpu": "1m"},
        "resources": {"requests": {"cpu": "30m"}},
        "volumes": volumes if on else [],
        "hostNetwork": False,
    }
    if name.endswith(("0", "3", "6")):
        spec["schedulingGroup"] = {"podGroupName": f"m{name[-1]}"}
    status = {
        "phase": "Running" if on else "Pending",
        "qosClass": "Burstable",
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
        "containerStatuses": [{"name": "c", "resources": RESOURCES, "allocatedResources": {"cpu": "10m"}}],
    }
    return {"metadata": _inside(name), "spec": spec, "status": status}


def placed_pod(name: str) -> Json:
    return pod(name, on=f"hostile-{int(name[1:]) % 7}")


def policy(name: str) -> Json:
    rules = {
        "filters": [{"name": "f", "require": 'has(node.name) or pod.name == "x"', "message": "no"}],
        "scores": [{"name": "s", "cases": ["node.free.cpu > 1 → 50", "else → 3"], "weight": 2}],
        "let": [{"name": "a", "value": "node.free.memory"}],
    }
    spec = {"schedulerNames": ["nobody"], "podSelector": SELECTOR, "priority": 1, "weight": 3, **rules}
    status = {"activeGeneration": 1, "activeSpec": rules, "conditions": [{"type": "Active", "status": "True"}]}
    return {"metadata": _metadata(name), "spec": spec, "status": status}


def _workload(selector: Any) -> Callable[[str], Json]:
    return lambda name: {"metadata": _inside(name), "spec": {"selector": selector, "replicas": 2}}


def volume(name: str) -> Json:
    affinity = {"required": {"nodeSelectorTerms": [NODE_TERM]}}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "m0",
        "nodeAffinity": affinity,
        "csi": {"driver": "d", "volumeHandle": name},
        "claimRef": {"namespace": "m", "name": "m0", "uid": "c"},
    }
    return {"metadata": _metadata(name), "spec": spec, "status": {"phase": "Available"}}


def claim(name: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "m0"}
    return {"metadata": _inside(name), "spec": spec | {"storageClassName": "m0"}, "status": {"phase": "Bound"}}


def resource_slice(name: str) -> Json:
    device = {
        "name": "d0",
        "attributes": {"model": {"string": "m"}, "index": {"int": 1}},
        "capacity": {"memory": {"value": "1Gi", "requestPolicy": {"default": "1Gi", "validValues": ["1Gi"]}}},
        "consumesCounters": [{"counterSet": "c", "counters": {"n": {"value": "1"}}}],
        "taints": [{"key": "t", "value": "v", "effect": "NoSchedule"}],
        "allowMultipleAllocations": True,
    }
    pool = {"name": "hostile-1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": "hostile-1", "pool": pool, "devices": [device]}
    counters = {"sharedCounters": [{"name": "c", "counters": {"n": {"value": "2"}}}]}
    return {"metadata": _metadata(name), "spec": spec if name.endswith("0") else {**spec, "devices": []} | counters}


def device_taint_rule(name: str) -> Json:
    selector = {"driver": "d", "pool": "hostile-1", "device": "d0"}
    taint = {"key": "t", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
    return {"metadata": _metadata(name), "spec": {"deviceSelector": selector, "taint": taint}}


def resource_claim(name: str) -> Json:
    exactly = {"deviceClassName": "m0", "count": 1, "allocationMode": "ExactCount", "selectors": []}
    result: Json = {"request": "r", "driver": "d", "pool": "hostile-1", "device": "d0", "shareID": name}
    result["consumedCapacity"] = {"memory": "1Gi"}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [NODE_TERM]}}
    reserved = [{"resource": "pods", "name": "m0", "uid": "u"}]
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return {"metadata": _inside(name), "spec": spec, "status": {"allocation": allocation, "reservedFor": reserved}}


MAKERS: dict[str, Callable[[str], Json]] = {
    "nodes": lambda name: node(f"hostile-{name[1:]}"),
    "pods": pod,
    "placed": placed_pod,
    "namespaces": lambda name: {"metadata": _metadata(name)},
    "schedulingpolicies": policy,
    "deviceclasses": lambda name: {"metadata": _metadata(name), "spec": {"extendedResourceName": "x.io/other"}},
    "devicetaintrules": device_taint_rule,
    "resourceslices": resource_slice,
    "resourceclaims": resource_claim,
    "services": _workload({"app": "m"}),
    "replicationcontrollers": _workload({"app": "m"}),
    "replicasets": _workload(SELECTOR),
    "statefulsets": _workload(SELECTOR),
    "persistentvolumes": volume,
    "persistentvolumeclaims": claim,
    "storageclasses": lambda name: {
        "metadata": _metadata(name),
        "provisioner": "p",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["z"]}]}],
    },
    "csinodes": lambda name: {
        "metadata": _metadata(f"hostile-{name[1:]}"),
        "spec": {"drivers": [{"name": "d", "allocatable": {"count": 5}}]},
    },
    "csidrivers": lambda name: {"metadata": _metadata(name), "spec": {"storageCapacity": True}},
    "csistoragecapacities": lambda name: {
        "metadata": _inside(name),
        "nodeTopology": SELECTOR,
        "storageClassName": "m0",
        "capacity": "1Gi",
        "maximumVolumeSize": "1Gi",
    },
    "poddisruptionbudgets": lambda name: {
        "metadata": _inside(name),
        "spec": {"selector": SELECTOR, "minAvailable": 1},
        "status": {"disruptionsAllowed": 1, "disruptedPods": {"m1": "2026-01-01T00:00:00Z"}},
    },
    "podgroups": lambda name: {
        "metadata": _inside(name),
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1 + int(name[1:]) % 4}}, "priority": 10},
        "status": {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "False"}]},
    },
    "volumeattachments": lambda name: {
        "metadata": _metadata(name),
        "spec": {"attacher": "d", "nodeName": "hostile-1", "source": {"persistentVolumeName": "m0"}},
    },
}
"""What makes a good object, by resource; pods that are placed apart."""


def encode(value: Any) -> bytes:
    """Write JSON; members of an object may come as pairs, so that a name may stand twice."""
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, dict):
        return encode(tuple(value.items()))
    if isinstance(value, tuple):
        return b"{" + b",".join(encode(name) + b":" + encode(one) for name, one in value) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(encode, value)) + b"]"
    return json.dumps(value, ensure_ascii=False).encode()


def mutate(chance: random.Random, value: Any, times: int) -> Any:
    """Change so many random places of an object; the object itself stays as it is."""
    for _ in range(times):
        value = _change(chance, value, chance.choice(list(_paths(value))))
    return value


def _paths(value: Any, path: tuple[int, ...] = ()) -> Any:
    yield path
    if isinstance(value, dict):
        value = tuple(value.items())
    if isinstance(value, tuple):
        for place, (_, one) in enumerate(value):
            yield from _paths(one, (*path, place))
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from _paths(one, (*path, place))


def _change(chance: random.Random, value: Any, path: tuple[int, ...]) -> Any:
    """Replace, wrap, delete or double what is at a path."""
    if not path:
        return _other(chance, value) if chance.random() < 0.2 else value
    place, rest = path[0], path[1:]
    parts = list(value.items() if isinstance(value, dict) else value)
    pairs = not isinstance(value, list)
    if rest:
        one = parts[place][1] if pairs else parts[place]
        changed = _change(chance, one, rest)
        parts[place] = (parts[place][0], changed) if pairs else changed
    else:
        match chance.randrange(6):
            case 0:
                del parts[place]
            case 1:
                parts.append(parts[place])
            case 2 if pairs:
                parts[place] = (chance.choice(("", "x", "cpu", "metadata", parts[place][0])), parts[place][1])
            case _:
                one = parts[place][1] if pairs else parts[place]
                other = _other(chance, one)
                parts[place] = (parts[place][0], other) if pairs else other
    return tuple(parts) if pairs else parts


def _other(chance: random.Random, value: Any) -> Any:
    kind = chance.randrange(8)
    if kind == 0:
        return [value]
    if kind == 1:
        return {"x": value}
    if kind == 2:
        return Raw(b'{"f:a":' * 300 + encode(value) + b"}" * 300)
    return chance.choice(NASTY)
