"""Pod classes: pods that scheduling cannot tell apart share one evaluation.

The key holds everything that any plugin reads of a pod, as bytes of its encoded parts: namespace, labels and the
spec without what differs between siblings for no reason (container names, volumes). Of volumes only images make a
class: filters that read claims and disks are asked anew for each pod. Of owners, only those count whose selector a
pod is spread by. Pods that wait have no resources in their status; one that does is told apart by them, and by the
names they go by.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec
from msgspec.structs import replace

from policysched.model.objects import Container, Pod, PodSpec, PodStatus, Volume, workload_owner

_ENCODER = msgspec.json.Encoder(order="deterministic")
_NO_STATUS = PodStatus()


def class_key(pod: Pod, extra: Hashable = None) -> Hashable:
    """Give the key of the pod's class; `extra` adds what policies read."""
    spec, status = pod.spec, pod.status
    told: dict[str, Any] = {"volumes": _volumes(spec)}
    resized = status.resources or status.allocated_resources or status.container_statuses
    if not (resized or status.init_container_statuses):
        told["containers"] = [_nameless(container) for container in spec.containers]
        told["init_containers"] = [_nameless(container) for container in spec.init_containers]
        status = _NO_STATUS
    owner = None if spec.topology_spread_constraints else workload_owner(pod)
    parts = [pod.metadata.namespace, pod.metadata.labels, replace(spec, **told), status, owner]
    key = _ENCODER.encode(parts)
    return (key, extra) if extra is not None else key


def _nameless(container: Container) -> Container:
    return replace(container, name="")


def _volumes(spec: PodSpec) -> list[Volume]:
    return [Volume(image=volume.image) for volume in spec.volumes if volume.image is not None]
