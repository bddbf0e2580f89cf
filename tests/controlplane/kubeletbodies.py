"""What kubelets write: a pod's status when it runs, a node's Ready condition, its lease.

Pure data: it makes no request and reads no clock. Images and commands mean nothing: every container starts at once,
runs until its pod is deleted, and then stops at once unless it is to sleep before.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

Json = dict[str, Any]
_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def running(pod: Json, node: Json, address: str, now: str) -> Json:
    """Give the status of a pod that has begun to run on a node. The conditions merge by type."""
    spec = pod["spec"]
    host = _address_of(node)
    own = host if spec.get("hostNetwork") else address
    return {
        "phase": "Running",
        "conditions": [{"type": each, "status": "True", "lastTransitionTime": seconds(now)} for each in _CONDITIONS],
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": own,
        "podIPs": [{"ip": own}],
        "startTime": seconds(now),
        "initContainerStatuses": [_ended(each, now) for each in spec.get("initContainers") or ()],
        "containerStatuses": [_started(each, now) for each in spec["containers"]],
    }


def lingering(pod: Json, now: datetime) -> float:
    """Say how long a pod that is deleted still runs, because it sleeps before it stops. Units: seconds."""
    hooks = [each.get("lifecycle", {}).get("preStop", {}) for each in pod["spec"]["containers"]]
    slept: int = max(hook.get("sleep", {}).get("seconds", 0) for hook in hooks)
    grace: int = pod["metadata"].get("deletionGracePeriodSeconds") or 0
    ends = datetime.fromisoformat(pod["metadata"]["deletionTimestamp"])
    return (ends - now).total_seconds() - grace + min(slept, grace)


def ready(now: str) -> Json:
    """Give the condition of a node that is well."""
    return {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": seconds(now),
        "lastTransitionTime": seconds(now),
    }


def allocatable(before: Json, node: Json) -> Json:
    """Give what a node offers now that somebody changed its capacity of extended resources; None takes one away.

    Source: pkg/kubelet/nodestatus/setters.go (MachineInfo).
    """
    was, now = (each["status"].get("capacity") or {} for each in (before, node))
    offered = node["status"].get("allocatable") or {}
    changed = [name for name in {**was, **now} if "/" in name and was.get(name) != now.get(name)]
    return {name: now.get(name) for name in changed if offered.get(name) != now.get(name)}


def lease(node: Json, now: str, lasts: float) -> Json:
    """Give the lease of a node; it goes with the node."""
    name = node["metadata"]["name"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
    spec = {"holderIdentity": name, "leaseDurationSeconds": max(1, round(lasts)), "renewTime": now}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]},
        "spec": spec,
    }


def renewal(now: str) -> Json:
    """Give the change that renews a lease."""
    return {"spec": {"renewTime": now}}


def seconds(now: str) -> str:
    """Cut a time to the second: all but leases and events have no more."""
    return now[:19] + "Z"


def _address_of(node: Json) -> str:
    addresses = node.get("status", {}).get("addresses") or ()
    return next((str(each["address"]) for each in addresses if each["type"] == "InternalIP"), "127.0.0.1")


def _started(container: Json, now: str) -> Json:
    return _container(container, {"running": {"startedAt": seconds(now)}}, ready=True)


def _ended(container: Json, now: str) -> Json:
    """An init container is done, unless it is one of those that run along."""
    if container.get("restartPolicy") == "Always":
        return _started(container, now)
    times = {"startedAt": seconds(now), "finishedAt": seconds(now)}
    return _container(container, {"terminated": {"exitCode": 0, "reason": "Completed"} | times}, ready=True)


def _container(container: Json, state: Json, *, ready: bool) -> Json:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
    }
