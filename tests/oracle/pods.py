"""Pods for generated cases: those already placed and the one to schedule.

Knows nothing of configurations. The pod to schedule carries the traits of the case's themes; placed
pods carry only what weighs on their node: requests, host ports, resizes, their end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import affinity, images, resources

if TYPE_CHECKING:
    from random import Random

ADDRESSES = ["", "", "0.0.0.0", "127.0.0.1", "10.0.0.7"]  # noqa: S104 - host addresses of generated pods
PORTS = [80, 443, 8080]
RESTART_ALL = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
RESTART = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}


def _pod(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
        "status": {},
    }


def _host_ports(rng: Random, containers: list[dict[str, Any]]) -> None:
    for container in containers:
        ports = []
        for _ in range(rng.choice([0, 1, 1, 2])):
            number = rng.choice(PORTS)
            port: dict[str, Any] = {"containerPort": number, "hostPort": number}
            if rng.random() < 0.15:
                port["hostPort"] = 0
            if address := rng.choice(ADDRESSES):
                port["hostIP"] = address
            if rng.random() < 0.7:
                port["protocol"] = rng.choice(["TCP", "TCP", "UDP", "SCTP"])
            ports.append(port)
        if ports:
            container["ports"] = ports


def _demand(rng: Random, themes: frozenset[str], *, scale: int = 1) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": resources.containers(rng, scale=scale)}
    if rng.random() < 0.3:
        spec["initContainers"] = resources.init_containers(rng, scale=scale)
    if "resources" in themes and rng.random() < 0.3:
        spec["resources"] = resources.pod_level(rng)
    # kube-scheduler adds the overhead to the very number that a pod-level request was defaulted from, once more at
    # every look, where that number is spelled as the API server would not store it: the two are kept apart
    if "resources" in themes and "resources" not in spec and rng.random() < 0.3:
        spec["overhead"] = resources.overhead(rng)
    if "ports" in themes:
        _host_ports(rng, [*spec["containers"], *spec.get("initContainers", [])])
        if rng.random() < 0.1:
            spec["hostNetwork"] = True
    return spec


def placed(rng: Random, name: str, node: str, themes: frozenset[str]) -> dict[str, Any]:
    """Make a pod that is on a node; it may be terminating, finished, or in the middle of a resize."""
    pod = _pod(name, _demand(rng, themes))
    pod["spec"]["nodeName"] = node
    pod["status"]["phase"] = rng.choices(["Running", "Pending", "Succeeded", "Failed"], [16, 2, 1, 1])[0]
    if rng.random() < 0.05:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        pod["metadata"]["deletionGracePeriodSeconds"] = 30
    if "resources" in themes and rng.random() < 0.4:
        resources.resize(rng, pod)
    return pod


def pending(rng: Random, name: str, nodes: list[str], themes: frozenset[str]) -> dict[str, Any]:
    """Make the pod to schedule."""
    scale = rng.choice([1, 1, 1, 2, 4, 40]) if "resources" in themes else 1
    spec = _demand(rng, themes, scale=scale)
    if rng.random() < 0.06:
        spec["containers"] = [{"name": "besteffort", "image": "app:1"}]
        spec.pop("initContainers", None)
    if "taints" in themes and rng.random() < 0.75:
        spec["tolerations"] = affinity.tolerations(rng)
    if "cordon" in themes and rng.random() < 0.5:
        spec["tolerations"] = [*spec.get("tolerations", []), affinity.unschedulable_toleration(rng)]
    if "name" in themes:
        spec["nodeName"] = rng.choice([*nodes, "absent"])
    if "affinity" in themes:
        _select(rng, spec, nodes)
    if "images" in themes:
        _name_images(rng, spec)
    if "features" in themes:
        _require_features(rng, spec)
    return _pod(name, spec)


def _select(rng: Random, spec: dict[str, Any], nodes: list[str]) -> None:
    rules: dict[str, Any] = {}
    if rng.random() < 0.3:
        spec["nodeSelector"] = affinity.node_selector(rng)
    if rng.random() < 0.4:
        rules["requiredDuringSchedulingIgnoredDuringExecution"] = affinity.required(rng, nodes)
    if rng.random() < 0.75:
        rules["preferredDuringSchedulingIgnoredDuringExecution"] = affinity.preferred(rng, nodes)
    if rules or rng.random() < 0.3:
        spec["affinity"] = {"nodeAffinity": rules}


def _name_images(rng: Random, spec: dict[str, Any]) -> None:
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        container["image"] = images.reference(rng)
    if rng.random() < 0.4:
        spec["volumes"] = images.volumes(rng)


def _require_features(rng: Random, spec: dict[str, Any]) -> None:
    if rng.random() < 0.6:
        container = rng.choice([*spec["containers"], *spec.get("initContainers", [])])
        container["restartPolicy"] = container.get("restartPolicy", "Never")
        container["restartPolicyRules"] = rng.choice([[RESTART_ALL], [RESTART, RESTART_ALL], [RESTART]])
    if rng.random() < 0.5:
        spec["hostNetwork"] = rng.random() < 0.7
        spec["hostUsers"] = rng.choice([False, False, True])
    if rng.random() < 0.25:
        container = rng.choice([*spec["containers"], *spec.get("initContainers", [])])
        options = rng.choice([["noexec"], ["nodev", "nosuid"], []])
        container["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch", "bindMountOptions": options}]
        spec["volumes"] = [*spec.get("volumes", []), {"name": "scratch", "emptyDir": {}}]
