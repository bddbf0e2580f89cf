"""Small objects to store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
POLICIES = "/apis/policysched.io/v1beta1/schedulingpolicies"
DEFINITION: Json = yaml.safe_load((Path(__file__).parents[2] / "crds" / "schedulingpolicies.yaml").read_text("utf-8"))


def pod(name: str = "web", *, labels: Json | None = None, **spec: Any) -> Json:
    """Make a pod of one container."""
    metadata: Json = {"name": name} | ({"labels": labels} if labels else {})
    body = {"containers": [{"name": "c", "image": "nginx:1"}]} | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def binding(name: str, node: str, **metadata: Any) -> Json:
    """Make a Binding of a pod to a node."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name} | metadata, "target": target}


def config_map(name: str, **data: str) -> Json:
    """Make a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str, replicas: int, image: str = "nginx:1") -> Json:
    """Make a Deployment."""
    labels = {"app": name}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def policy(name: str = "p", **spec: Any) -> Json:
    """Make a SchedulingPolicy."""
    return {
        "apiVersion": "policysched.io/v1beta1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
