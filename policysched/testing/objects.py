"""`make_node`, `make_pod`: nodes and pods as kubectl prints them; `read_pod`: the `Pod` that plugin methods get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from policysched.model.decode import decode_pod
from policysched.model.defaults import fill_pod, priority_classes
from policysched.model.objects import Pod
from policysched.model.release_choice import AUTO, release_named

Object: TypeAlias = dict[str, Any]
PROFILE: Final = "default-scheduler"
"""Default `schedulerName` of pods and of the profile."""
_ALLOCATABLE: Final = {"cpu": "4", "memory": "16Gi", "pods": "110"}


def make_node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
) -> Object:
    """Return a Node object.

    Args:
        name: Its name, also the label `kubernetes.io/hostname`.
        labels: More labels.
        allocatable: Allocatable quantities by resource; default 4 cores, 16 Gi and 110 pods.
        taints: Taints, as in `spec.taints`.
    """
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
    """Return a Pod object with one container.

    Args:
        name: Its name.
        namespace: Its namespace.
        labels: Its labels.
        annotations: Its annotations.
        requests: Requested quantities by resource.
        node: The node that it runs on; empty for a pending pod.
        spec: Other fields of its spec, such as `nodeSelector`.
    """
    container = {"name": "main", "image": "registry.example/app", "resources": {"requests": dict(requests or {})}}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    placed = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {"schedulerName": PROFILE, "containers": [container], **placed, **spec},
    }


def read_pod(pod: Object, kube_version: str = AUTO) -> Pod:
    """Return the `Pod` that plugin methods get.

    Args:
        pod: The pod, as `make_pod` returns it.
        kube_version: The Kubernetes minor whose API server completes the pod, as `policysched.dry_run` takes it.
    """
    return decode_pod(fill_pod(pod, priority_classes(()), release_named(kube_version)))
