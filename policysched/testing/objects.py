"""Nodes and pods as kubectl prints them, and as plugins are given them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from policysched.model.decode import decode_pod
from policysched.model.defaults import fill_pod, priority_classes
from policysched.model.objects import Pod

Object: TypeAlias = dict[str, Any]
PROFILE: Final = "default-scheduler"
"""The scheduler name of pods and of the profile, unless a test says otherwise."""
_ALLOCATABLE: Final = {"cpu": "4", "memory": "16Gi", "pods": "110"}


def make_node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
) -> Object:
    """Make a node as kubectl prints it: 4 cores, 16 Gi and 110 pods, and what is given."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": [dict(one) for one in taints]},
        "status": {"allocatable": {**_ALLOCATABLE, **(allocatable or {})}},
    }


def make_pod(
    name: str,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    node: str = "",
    **spec: Any,
) -> Object:
    """Make a pod as kubectl prints it, on a node where one is named; `spec` has any other fields of its spec."""
    container = {"name": "main", "image": "registry.example/app", "resources": {"requests": dict(requests or {})}}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    placed = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {"schedulerName": PROFILE, "containers": [container], **placed, **spec},
    }


def read_pod(pod: Object) -> Pod:
    """Read a pod as plugins are given it, for tests that call their methods."""
    return decode_pod(fill_pod(pod, priority_classes(())))
