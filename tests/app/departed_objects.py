"""Generations of objects of all watched kinds: no name, label, resource, image or driver is used twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.soak.objects import ME

Json = dict[str, Any]
_DEVICES, _STORAGE = "resource.k8s.io/v1", "storage.k8s.io/v1"


def generation(number: int) -> Iterator[Json]:
    """Yield the objects of a generation, in the order of their creation."""
    n = number
    yield _object("v1", "Namespace", f"ns-{n}", labels={f"nl{n}": "x"})
    yield _node(n)
    yield from _volumes(n)
    yield from _devices(n)
    yield from _settings(n)
    yield _policy(n)
    yield from _pods(n)


def _object(api: str, kind: str, name: str, namespace: str = "", labels: Json | None = None, **parts: Any) -> Json:
    metadata = {"name": name, "labels": labels or {}} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}


def _node(n: int) -> Json:
    amounts = {"cpu": "16", "memory": f"{2**36 + n}", "pods": "110", f"example.com/r{n}": "4"}
    labels = {"kubernetes.io/hostname": f"node-{n}", "topology.kubernetes.io/zone": f"z{n}", f"lk{n}": f"lv{n}"}
    image = {"names": [f"registry.example/img{n}:1"], "sizeBytes": 300_000_000 + n}
    status: Json = {"capacity": amounts, "allocatable": amounts, "images": [image], "declaredFeatures": [f"Feat{n}"]}
    status["conditions"] = [{"type": "Ready", "status": "True"}]
    taint = {"key": f"tk{n}", "value": f"tv{n}", "effect": "PreferNoSchedule"}
    return _object("v1", "Node", f"node-{n}", labels=labels, spec={"taints": [taint]}, status=status)


def _volumes(n: int) -> Iterator[Json]:
    driver = {"name": f"drv{n}", "nodeID": f"node-{n}", "topologyKeys": [f"lk{n}"], "allocatable": {"count": 5}}
    yield _object(_STORAGE, "CSINode", f"node-{n}", spec={"drivers": [driver]})
    yield _object(_STORAGE, "CSIDriver", f"drv{n}", spec={"storageCapacity": True})
    waits: Json = {"provisioner": f"drv{n}", "volumeBindingMode": "WaitForFirstConsumer"}
    yield _object(_STORAGE, "StorageClass", f"sc-{n}", **waits)
    topology: Json = {"nodeTopology": {"matchLabels": {f"lk{n}": f"lv{n}"}}, "storageClassName": f"sc-{n}"}
    yield _object(_STORAGE, "CSIStorageCapacity", f"cap-{n}", f"ns-{n}", capacity="9Gi", **topology)
    term: Json = {"matchExpressions": [{"key": f"lk{n}", "operator": "In", "values": [f"lv{n}"]}]}
    amounts: Json = {"accessModes": ["ReadWriteOnce"], "storageClassName": f"sc-{n}"}
    volume: Json = amounts | {
        "capacity": {"storage": "9Gi"},
        "csi": {"driver": f"drv{n}", "volumeHandle": f"h{n}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": f"ns-{n}", "name": f"pvc-{n}"},
    }
    yield _object("v1", "PersistentVolume", f"pv-{n}", spec=volume, status={"phase": "Bound"})
    claim = amounts | {"resources": {"requests": {"storage": "5Gi"}}, "volumeName": f"pv-{n}"}
    made = _object("v1", "PersistentVolumeClaim", f"pvc-{n}", f"ns-{n}", spec=claim, status={"phase": "Bound"})
    made["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    yield made
    attached = {"attacher": f"drv{n}", "nodeName": f"node-{n}", "source": {"persistentVolumeName": f"pv-{n}"}}
    yield _object(_STORAGE, "VolumeAttachment", f"va-{n}", spec=attached, status={"attached": True})


def _devices(n: int) -> Iterator[Json]:
    driver = f"d{n}.example.com"
    spec: Json
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    spec = {"selectors": [selector], "extendedResourceName": f"example.com/x{n}"}
    yield _object(_DEVICES, "DeviceClass", f"dc-{n}", spec=spec)
    attributes, capacity = {f"at{n}": {"string": f"s{n}"}}, {f"mem{n}": {"value": f"{n + 1}Gi"}}
    made = [{"name": f"{letter}{n}", "attributes": attributes, "capacity": capacity} for letter in "ab"]
    pool = {"name": f"pool-{n}", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": f"node-{n}", "pool": pool, "devices": made}
    yield _object(_DEVICES, "ResourceSlice", f"slice-{n}", spec=spec)
    selector = {"cel": {"expression": f'device.attributes["{driver}"].at{n} == "s{n}"'}}
    request = {"name": "r", "exactly": {"deviceClassName": f"dc-{n}", "selectors": [selector]}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    yield _object(_DEVICES, "ResourceClaimTemplate", f"claim-{n}", f"ns-{n}", spec=spec)


def _settings(n: int) -> Iterator[Json]:
    namespace, selector = f"ns-{n}", {"matchLabels": {f"k{n}": f"v{n}"}}
    yield _object("policy/v1", "PodDisruptionBudget", f"pdb-{n}", namespace, spec={"selector": selector})
    yield _object("scheduling.k8s.io/v1", "PriorityClass", f"pc-{n}", value=1000 + n)
    spec = {"clusterIP": "None", "selector": {f"k{n}": f"v{n}"}, "ports": [{"port": 80}]}
    yield _object("v1", "Service", f"svc-{n}", namespace, spec=spec)
    gang = {"schedulingPolicy": {"gang": {"minCount": 2}}, "priorityClassName": f"pc-{n}", "priority": 1000 + n}
    yield _object("scheduling.k8s.io/v1beta1", "PodGroup", f"pg-{n}", namespace, spec=gang)


def _policy(n: int) -> Json:
    """Return a policy; each fourth does not compile."""
    count = f'node.pods.count(peer.labels["k{n}"] == pod.labels["k{n}"])' if n % 4 else "node.pods.county(1)"
    spec = {
        "schedulerNames": [ME],
        "filters": [
            {"name": f"label-{n}", "require": f'node.labels["lk{n}"] != "z{n}"'},
            {"name": f"count-{n}", "require": f"{count} < {50 + n}"},
        ],
        "scores": [{"name": f"zone-{n}", "cases": [f'node.zone == "z{n}" → {n % 100}', "else → 1"]}],
    }
    return _object("policysched.io/v1beta1", "SchedulingPolicy", f"policy-{n}", spec=spec)


def _pods(n: int) -> Iterator[Json]:
    selector = {"matchLabels": {f"k{n}": f"v{n}"}}
    namespaces = {"matchLabels": {f"nl{n}": "x"}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector, "namespaceSelector": namespaces}
    spread = {"maxSkew": 9, "topologyKey": f"lk{n}", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}
    weight = {"weight": 5, "preference": {"matchExpressions": [{"key": f"lk{n}", "operator": "Exists"}]}}
    here, port = {f"lk{n}": f"lv{n}"}, {"containerPort": 80, "hostPort": 1 + n}
    yield _pod(n, "selects", nodeSelector=here)
    yield _pod(n, "avoids", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    yield _pod(n, "spreads", topologySpreadConstraints=[spread], tolerations=[{"key": f"tk{n}", "operator": "Exists"}])
    prefers = {"preferredDuringSchedulingIgnoredDuringExecution": [weight]}
    yield _pod(n, "fits-nowhere", nodeSelector={f"never{n}": f"x{n}"}, affinity={"nodeAffinity": prefers})
    yield _pod(n, "mounts", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": f"pvc-{n}"}}])
    yield _pod(n, "lacks-claim", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": f"missing-{n}"}}])
    yield _pod(n, "has-device", resourceClaims=[{"name": "x", "resourceClaimTemplateName": f"claim-{n}"}])
    yield _pod(n, "extended", {f"example.com/r{n}": "1"}, ports=[port])
    yield _pod(n, "device-resource", {f"example.com/x{n}": "1"})
    yield _pod(n, "no-such-resource", {f"example.com/nothing{n}": "1"})
    yield _pod(n, "preempts", {"cpu": "12"}, nodeSelector=here, priorityClassName=f"pc-{n}")
    yield _pod(n, "gated", schedulingGates=[{"name": f"example.com/g{n}"}])
    yield _pod(n, "lacks-group", schedulingGroup={"podGroupName": f"missing-{n}"})
    for place in range(2):
        yield _pod(n, f"member-{place}", schedulingGroup={"podGroupName": f"pg-{n}"}, priorityClassName=f"pc-{n}")
    yield _pod(n, "elsewhere", schedulerName=f"other-{n}", nodeName=f"node-{n}")


def _pod(n: int, name: str, requests: Json | None = None, ports: list[Json] | None = None, **spec: Any) -> Json:
    amounts = {"cpu": "100m", "memory": f"{2**26 + n}"} | (requests or {})
    limits = {name: amount for name, amount in amounts.items() if "/" in name}
    container: Json = {"name": "main", "image": f"registry.example/img{n}:1", "ports": ports or []}
    container["resources"] = {"requests": amounts, "limits": limits}
    labels = {"app": f"app-{n}", f"k{n}": f"v{n}"}
    return _object(
        "v1", "Pod", f"{name}-{n}", f"ns-{n}", labels, spec={"schedulerName": ME, "containers": [container]} | spec
    )
