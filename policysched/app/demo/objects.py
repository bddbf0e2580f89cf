"""The objects of the demo: four nodes, one of them a control plane, a policy in its versions, and pods."""

from __future__ import annotations

import copy
from typing import Any, Final

from policysched.model.policy import API_VERSION, KIND
from policysched.sandbox import sandbox_nodes

Object = dict[str, Any]
POLICY: Final = "web-on-ssd"
_DISKS: Final = {"piworknode001": "ssd", "piworknode002": "ssd", "piworknode003": "hdd"}


def demo_nodes() -> list[Object]:
    """Make the tainted control plane and three workers with a disk label."""
    names = ("master", *_DISKS)
    nodes = sandbox_nodes(len(names))
    for node, name in zip(nodes, names, strict=True):
        node["metadata"]["name"] = name
        node["metadata"]["labels"]["kubernetes.io/hostname"] = name
        if name in _DISKS:
            node["metadata"]["labels"]["disk"] = _DISKS[name]
        else:
            node["spec"]["taints"] = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    return nodes


def demo_policy(favourite: str = "piworknode001", require: str = 'node.labels["disk"] == "ssd"') -> Object:
    """Make the policy: web pods need an SSD and like one node best."""
    spec = {
        "podSelector": {"matchLabels": {"app": "web"}},
        "filters": [{"name": "ssd", "require": require, "message": "no SSD"}],
        "scores": [
            {"name": "favourite", "normalize": "Max", "cases": [f'node.name == "{favourite}" → 80', "else → 20"]}
        ],
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": POLICY}, "spec": copy.deepcopy(spec)}


def demo_pod(name: str, node_selector: dict[str, str] | None = None) -> Object:
    """Make a web pod."""
    container = {
        "name": "web",
        "image": "nginx:1.29",
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}},
    }
    spec: Object = {"schedulerName": "policysched", "containers": [container]}
    if node_selector:
        spec["nodeSelector"] = node_selector
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}
