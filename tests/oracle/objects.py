"""Small complete objects for cases that are written by hand.

Knows nothing of random cases. Every function takes the fields that differ as keywords, named as
Kubernetes names them, so that a test shows only what it is about.
"""

from __future__ import annotations

from typing import Any

from . import configs

GIBI = 2**30


def node(name: str, *, labels: dict[str, str] | None = None, spec: Any = None, **status: Any) -> Any:
    """Make a node with 4 cores, 8 GiB and room for 110 pods unless its status says otherwise."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec or {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}, **status},
    }


def pod(name: str = "web", *, status: Any = None, **spec: Any) -> Any:
    """Make a pod; without containers it has one that requests nothing."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container()], **spec},
        "status": status or {},
    }


def container(name: str = "app", *, image: str = "app:1", **fields: Any) -> Any:
    """Make a container; `requests` and `limits` go into its resources."""
    resources = {key: fields.pop(key) for key in ("requests", "limits") if key in fields}
    return {"name": name, "image": image, "resources": resources, **fields}


def requesting(name: str = "web", *, node_name: str = "", **requests: Any) -> Any:
    """Make a pod whose only container requests something, placed where a node is named."""
    spec = {"nodeName": node_name} if node_name else {}
    return pod(name, containers=[container(requests=requests)], **spec)


def required(*terms: Any) -> Any:
    """Require one of some node selector terms."""
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"nodeAffinity": rule}


def named(*names: str) -> Any:
    """Select nodes by name."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


def case(objects: list[Any], wanted: Any, config: Any = None) -> dict[str, Any]:
    """Put a case together, with the configuration of generated cases unless one is given."""
    return {"objects": objects, "pod": wanted, "config": config or configs.base()}
