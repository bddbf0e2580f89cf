"""What rules read, taken from plain objects one by one: nothing of the columns, the counters or the frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policysched.language.evaluation.scalar import ScalarFrame
from policysched.language.ir.graph import Input
from policysched.model.objects import Node, OwnerReference, Pod, Taint
from policysched.model.objects.meta import seconds_of
from policysched.model.pod_requirements import pod_images, pod_priority, qos_class
from policysched.model.policy import MetricKey, Sample
from policysched.model.release import DEFAULT
from policysched.model.requests import allocatable, amounts_in_use, incoming_requests, placed_requests, pod_limits
from policysched.rules.compile.policy import MetricInput

IN_USE = amounts_in_use(compares_sums=DEFAULT.resizes_compare_sums)
"""The rule for resizes of a cluster whose release is not named."""
LABELS = {
    "arch": "kubernetes.io/arch",
    "os": "kubernetes.io/os",
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
    "instance_type": "node.kubernetes.io/instance-type",
}


@dataclass
class Around:
    """A cluster as lists, a moment, and the pod that is decided about."""

    pod: Pod
    nodes: Sequence[Node]
    placed: Iterable[tuple[Pod, str]]
    """Pods with the names of their nodes."""
    sizes: Mapping[str, int]
    """Image sizes, as the first node that reported them said."""
    now: float = 0.0
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    samples: Mapping[MetricKey, Mapping[str, Sample]] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    """Storage classes by claim."""
    count: int = 0
    """How many pods there are."""

    def views(self) -> list[NodeView]:
        """A view of each node."""
        by_node: dict[str, list[Pod]] = {one.metadata.name: [] for one in self.nodes}
        self.count = 0
        for pod, name in self.placed:
            self.count += 1
            by_node.setdefault(name, []).append(pod)
        made: list[NodeView] = []
        made += [NodeView(self, one, by_node[one.metadata.name], made) for one in self.nodes]
        return made


def age(created: str | None, now: float) -> float:
    at = seconds_of(created)
    return 0.0 if at is None else max(0.0, (now - at) // 10 * 10)


class NodeView:
    """One node."""

    def __init__(self, around: Around, node: Node, held: list[Pod], nodes: Sequence[NodeView]) -> None:
        self.around, self.node, self.held = around, node, held
        self.nodes: Sequence[ScalarFrame] = nodes
        self.feasible = self.placement = self.nodes
        self.now: float = around.now

    @property
    def pods(self) -> Sequence[ScalarFrame]:
        return [PeerView(self, one) for one in self.held]

    def value(self, item: Input) -> Any:
        match item.root:
            case "node":
                return self._own(item)
            case "metrics":
                return self._measured(item)
            case "cluster":
                return float(len(self.around.nodes) if item.path == ("nodes",) else self.around.count)
            case _:
                return of_pod(self.around.pod, item, self.around, amounts_of(incoming_requests(self.around.pod)))

    def _own(self, item: Input) -> Any:
        name = item.path[0]
        if name in LABELS:
            return self.node.metadata.labels.get(LABELS[name])
        read = NODE_FIELDS.get(name)
        return read(self, item) if read else self._amount(name, item.key or item.path[1].replace("_", "-"))

    def cached(self) -> float:
        here = {image for one in self.node.status.images for image in one.names}
        return float(sum(self.around.sizes[image] for image in {*pod_images(self.around.pod)} & here))

    def _amount(self, side: str, resource: str) -> float:
        has = amounts_of(allocatable(self.node)).get(resource, 0)
        if resource == "pods":
            has = allocatable(self.node).pods
        taken = sum(amounts_of(placed_requests(one, IN_USE)).get(resource, 0) for one in self.held)
        return float({"allocatable": has, "requested": taken, "free": has - taken}[side])

    def _measured(self, item: Input) -> float | None:
        assert isinstance(item, MetricInput)
        sample = self.around.samples.get(item.metric, {}).get(self.node.metadata.name)
        if sample is None or sample.at < self.now - item.max_age:
            return None
        return sample.value * item.scale


class PeerView:
    """One placed pod, on its node."""

    def __init__(self, view: NodeView, pod: Pod) -> None:
        self._view, self._pod = view, pod
        self.nodes = self.feasible = self.placement = view.nodes
        self.pods: Sequence[ScalarFrame] = ()
        self.now = view.now

    def value(self, item: Input) -> Any:
        if item.root != "peer":
            return self._view.value(item)
        if item.path[0] == "age" and seconds_of(self._pod.metadata.creation_timestamp) is None:
            return None
        return of_pod(self._pod, item, self._view.around, amounts_of(placed_requests(self._pod, IN_USE)))


def amounts_of(requests: Any) -> dict[str, int]:
    """Amounts by resource; a pod counts as one pod."""
    return {"cpu": requests.cpu_millis, "memory": requests.memory_bytes, "ephemeral-storage": requests.ephemeral_bytes,
            "pods": 1, **dict(requests.scalars)}  # fmt: skip


def of_pod(pod: Pod, item: Input, around: Around, amounts: Mapping[str, int]) -> Any:
    name = item.path[0]
    if name == "requests":
        return float(amounts.get(item.key or item.path[1].replace("_", "-"), 0))
    return POD_FIELDS[name](pod, item, around)


def controller(pod: Pod) -> OwnerReference:
    return next((one for one in pod.metadata.owner_references if one.controller), OwnerReference())


def runtime(node: Node) -> list[str | None]:
    """Name and version of a node's container runtime."""
    return [part or None for part in [*node.status.node_info.container_runtime_version.split("://", 1), ""][:2]]


def strongest(taints: Sequence[Taint], key: str) -> Taint | None:
    """The taint of a key, of several the one with the strongest effect."""
    for effect in ("NoExecute", "NoSchedule", "PreferNoSchedule"):
        for taint in taints:
            if (taint.key, taint.effect) == (key, effect):
                return taint
    return None


TAINT_FIELDS: dict[str, Callable[[Sequence[Taint], str], Any]] = {
    "has": lambda taints, key: any(taint.key == key for taint in taints),
    "has_effect": lambda taints, effect: any(taint.effect == effect for taint in taints),
    "value": lambda taints, key: getattr(strongest(taints, key), "value", None),
    "effect": lambda taints, key: getattr(strongest(taints, key), "effect", None),
}
NODE_FIELDS: dict[str, Callable[[NodeView, Input], Any]] = {
    "name": lambda view, _: view.node.metadata.name,
    "labels": lambda view, item: view.node.metadata.labels.get(item.key or ""),
    "annotations": lambda view, item: view.node.metadata.annotations.get(item.key or ""),
    "ready": lambda view, _: any(one.type == "Ready" and one.status == "True" for one in view.node.status.conditions),
    "cordoned": lambda view, _: view.node.spec.unschedulable,
    "taints": lambda view, item: TAINT_FIELDS[item.path[1]](view.node.spec.taints, item.key or ""),
    "conditions": lambda view, item: {one.type: one.status for one in view.node.status.conditions}.get(item.key or ""),
    "addresses": lambda view, item: next(
        (one.address for one in view.node.status.addresses if one.type == item.key), None
    ),
    "kubelet_version": lambda view, _: view.node.status.node_info.kubelet_version or None,
    "kernel_version": lambda view, _: view.node.status.node_info.kernel_version or None,
    "os_image": lambda view, _: view.node.status.node_info.os_image or None,
    "container_runtime": lambda view, _: runtime(view.node)[0],
    "container_runtime_version": lambda view, _: runtime(view.node)[1],
    "age": lambda view, _: age(view.node.metadata.creation_timestamp, view.now),
    "cached_image_bytes": lambda view, _: view.cached(),
}


def claims_of(pod: Pod) -> list[str]:
    """Names of the claims of a pod, each once."""
    found = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            found.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            found.append(f"{pod.metadata.name}-{volume.name}")
    return list(dict.fromkeys(found))


def limit(pod: Pod, resource: str) -> float | None:
    found = pod_limits(pod).get(resource)
    return None if found is None else float(found.scaled(-3 if resource == "cpu" else 0))


def toleration(pod: Pod, item: Input) -> Any:
    for one in pod.spec.tolerations:
        if one.key == item.key:
            return {"has": True, "value": one.value, "effect": one.effect}[item.path[1]]
    return False if item.path[1] == "has" else None


POD_FIELDS: dict[str, Callable[[Pod, Input, Around], Any]] = {
    "name": lambda pod, *_: pod.metadata.name,
    "namespace": lambda pod, *_: pod.metadata.namespace,
    "labels": lambda pod, item, _: pod.metadata.labels.get(item.key or ""),
    "annotations": lambda pod, item, _: pod.metadata.annotations.get(item.key or ""),
    "namespace_labels": lambda pod, item, around: around.namespaces.get(pod.metadata.namespace, {}).get(item.key or ""),
    "qos": lambda pod, *_: qos_class(pod),
    "service_account": lambda pod, *_: pod.spec.service_account_name or "default",
    "priority": lambda pod, *_: float(pod_priority(pod)),
    "priority_class": lambda pod, *_: pod.spec.priority_class_name or None,
    "owner_kind": lambda pod, *_: controller(pod).kind or None,
    "owner_name": lambda pod, *_: controller(pod).name or None,
    "phase": lambda pod, *_: pod.status.phase or "Pending",
    "containers": lambda pod, *_: float(len(pod.spec.containers)),
    "images": lambda pod, *_: tuple(dict.fromkeys(pod_images(pod))),
    "claims": lambda pod, *_: tuple(claims_of(pod)),
    "storage_classes": lambda pod, _, around: tuple(
        dict.fromkeys(name for one in claims_of(pod) if (name := around.classes.get(f"{pod.metadata.namespace}/{one}")))
    ),
    "limits": lambda pod, item, _: limit(pod, item.key or item.path[1].replace("_", "-")),
    "tolerations": lambda pod, item, _: toleration(pod, item),
    "age": lambda pod, _, around: age(pod.metadata.creation_timestamp, around.now),
    "image_bytes": lambda pod, _, around: float(sum(around.sizes.get(image, 0) for image in pod_images(pod))),
}
