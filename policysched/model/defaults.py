"""Completes objects from files with the defaults that the API server would set.

Functions take dicts as kubectl prints them and return copies. Only fields that scheduling reads are set, and nothing
that would change a decision against what the file shows: no not-ready taint, no tolerations from admission.

Source: pkg/apis/core/v1/defaults.go, pkg/registry/core/pod/strategy.go, pkg/api/pod/util.go
(DefaultPodLevelResources), plugin/pkg/admission/priority, v1.36 and v1.37.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from policysched.model.decode import ObjectError, decode, decode_node, decode_pod, plain
from policysched.model.objects import Metadata, Namespace, PriorityClass
from policysched.model.quantity import QuantityError, parse
from policysched.model.release import DEFAULT, Release
from policysched.model.requests import container_amounts
from policysched.model.selection.name_validation import is_huge_page_resource, is_pod_level_resource

Object = dict[str, Any]

SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The priority classes that exist in every cluster."""
NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label that every namespace has and whose value is the namespace's name."""


@dataclass(frozen=True, slots=True)
class PriorityClasses:
    """The priority classes by name; `default` applies to pods without a class."""

    by_name: Mapping[str, PriorityClass] = field(default_factory=dict)
    default: PriorityClass | None = None


def priority_classes(objects: Iterable[Mapping[str, Any]]) -> PriorityClasses:
    """Return the PriorityClasses among some objects, and the two PriorityClasses that every cluster has.

    If several classes are a global default, the one with the lowest value applies.

    Raises:
        ObjectError: a class is malformed.
    """
    found = {name: PriorityClass(value=value) for name, value in SYSTEM_CLASSES.items()}
    for one in objects:
        if one.get("kind") == "PriorityClass":
            decoded = decode(PriorityClass, "PriorityClass", one)
            found[decoded.metadata.name] = decoded
    defaults = [one for one in found.values() if one.global_default]
    return PriorityClasses(found, min(defaults, key=lambda one: one.value, default=None))


def fill_node(raw: Mapping[str, Any]) -> Object:
    """Return a node with the API server's defaults: without allocatable amounts, the capacity is allocatable.

    Raises:
        ObjectError: the node is malformed.
    """
    node: Object = plain("Node", raw)
    decode_node(node)  # rejects wrong types, on which the next steps rely
    status = node.setdefault("status", {})
    if "allocatable" not in status and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])
    _round(status.get("allocatable"))
    return node


def fill_pod(
    raw: Mapping[str, Any],
    classes: PriorityClasses,
    release: Release = DEFAULT,
    admit: Callable[[Object], None] | None = None,
) -> Object:
    """Return a pod with the API server's defaults, completed as the admission plugins do.

    Args:
        raw: The pod; it is not changed.
        classes: The priority classes of the cluster.
        release: The Kubernetes release of the API server.
        admit: Changes the pod as admission plugins do.

    Raises:
        ObjectError: the pod is malformed, or its priority class does not exist.
    """
    pod: Object = plain("Pod", raw)
    decode_pod(pod)  # rejects wrong types, on which the next steps rely
    metadata, spec = pod.setdefault("metadata", {}), pod.setdefault("spec", {})
    metadata["namespace"] = metadata.get("namespace") or "default"
    spec["schedulerName"] = spec.get("schedulerName") or "default-scheduler"
    spec["serviceAccountName"] = spec.get("serviceAccountName") or "default"
    _fill_containers(spec)
    if not release.completes_pod_level:
        _fill_pod_level(pod, completes=False)
    for resources in _resource_lists(pod):
        _round(resources)
    _fill_priority(pod, classes)
    _fill_spreading(spec)
    for volume in spec.get("volumes", ()):
        _fill_disk(volume)
    merge_label_keys(spec, metadata.get("labels", {}))
    if admit is not None:
        admit(pod)
    if release.completes_pod_level:
        _fill_pod_level(pod, completes=True)
    return pod


def fill_namespace(raw: Object) -> None:
    """Set the label with the namespace's name, which every namespace has."""
    raw["metadata"].setdefault("labels", {})[NAME_LABEL] = raw["metadata"].get("name", "")


def implied_namespace(name: str) -> Namespace:
    """Return a Namespace with only its name label, for a namespace that objects are in but no object describes."""
    return Namespace(metadata=Metadata(name=name, labels={NAME_LABEL: name}))


def fill_volume_mode(raw: Object) -> None:
    """Set volumeMode Filesystem on a volume or claim without a volumeMode."""
    raw.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def fill_volume(raw: Object) -> None:
    """Set the defaults of a volume; a volume without a phase becomes Available."""
    fill_volume_mode(raw)
    raw.setdefault("status", {}).setdefault("phase", "Available")
    _fill_disk(raw.get("spec"))


def fill_storage_class(raw: Object) -> None:
    """Set volumeBindingMode Immediate on a storage class without a volumeBindingMode."""
    raw.setdefault("volumeBindingMode", "Immediate")


def _fill_disk(source: Any) -> None:
    """Set kind Shared on an Azure disk without a kind."""
    disk = source.get("azureDisk") if isinstance(source, dict) else None
    if isinstance(disk, dict):
        disk.setdefault("kind", "Shared")


def fill_controller(controller: Object) -> None:
    """Set the selector of a replication controller without a selector to the labels of its template."""
    labels = _inside(controller, "spec", "template", "metadata", "labels")
    spec = _inside(controller, "spec")
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)


def fill_claim(claim: Object) -> None:
    """Set a UID on a resource claim without a UID, because allocations are tracked by UID."""
    metadata = _inside(claim, "metadata")
    if not metadata.get("uid"):
        metadata["uid"] = f"{metadata.get('namespace')}/{metadata.get('name')}"


def _inside(raw: Any, *path: str) -> Object:
    """Return the dictionary at a path inside an object; an empty dictionary if the path does not exist."""
    for name in path:
        raw = raw.get(name) if isinstance(raw, dict) else None
    return raw if isinstance(raw, dict) else {}


def _containers(spec: Object) -> list[Object]:
    return [*spec.get("containers", ()), *spec.get("initContainers", ())]


def _fill_containers(spec: Object) -> None:
    for container in _containers(spec):
        resources = container.get("resources", {})
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
        for port in container.get("ports", ()):
            port["protocol"] = port.get("protocol") or "TCP"
            if spec.get("hostNetwork") and not port.get("hostPort"):
                port["hostPort"] = port.get("containerPort", 0)


def _fill_pod_level(pod: Object, *, completes: bool) -> None:
    """Set missing pod-level requests of a pod that has pod-level limits, stated or implied (for huge pages).

    Args:
        pod: The pod.
        completes: Whether requests are set for a pod with pod-level requests only too, and then limits.
    """
    resources = pod["spec"].get("resources", {})
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    if not limits and not requests:
        return
    summed_limits = _summed(pod, "limits")
    huge_pages = {
        name: text for name, text in summed_limits.items() if is_huge_page_resource(name) and name not in requests
    }
    limits = {**huge_pages, **limits}
    if limits or completes:
        texts = _summed(pod, "requests")
        summed = {name: texts[name] for name in ("cpu", "memory") if name in texts}
        limited = {name: amount for name, amount in limits.items() if is_pod_level_resource(name)}
        requests = {**limited, **summed, **requests}
        if completes:
            limits = {**_limits_for(pod["spec"], requests, summed_limits), **limits}
        resources |= {name: made for name, made in (("limits", limits), ("requests", requests)) if made}


def _limits_for(spec: Object, requests: Object, summed: Object) -> Object:
    """Return the pod-level limits to set beside pod-level requests: of the resources that all containers limit.

    Args:
        spec: The pod's spec.
        requests: The pod-level requests.
        summed: The sums of the containers' limits.
    """
    stated = [one.get("resources", {}).get("limits", {}) for one in _containers(spec)]
    limited = [name for name in summed if is_pod_level_resource(name) and all(name in one for one in stated)]
    amounts = {name: parse(requests[name]).largest(parse(summed[name])) for name in limited if name in requests}
    return {name: amount.text() for name, amount in amounts.items()}


def _summed(pod: Object, side: str) -> dict[str, str]:
    """Return the sums of the requests, or of the limits, of a pod's containers, as quantity texts."""
    spec = pod["spec"]
    counted = {
        kind: [
            {**container, "resources": {"requests": container.get("resources", {}).get(side, {})}}
            for container in spec.get(kind, ())
        ]
        for kind in ("containers", "initContainers")
    }
    amounts = container_amounts(decode_pod({**pod, "spec": {**spec, **counted}}))
    return {name: amount.text() for name, amount in amounts.items()}


def _resource_lists(pod: Object) -> list[Object]:
    """Return all resource lists of a pod (requests, limits, …), including those in its status."""
    spec, status = pod["spec"], pod.get("status", {})
    reported = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ()), status]
    parts = [part.get("resources", {}) for part in (*_containers(spec), spec, *reported)]
    lists = [part.get(name) for part in parts for name in ("requests", "limits")]
    lists += [part.get("allocatedResources") for part in reported]
    return [one for one in (*lists, spec.get("overhead")) if one]


def _round(resources: Object | None) -> None:
    """Round amounts up to thousandths, as the API server stores them; malformed amounts are not changed."""
    for name, amount in (resources or {}).items():
        with contextlib.suppress(QuantityError):
            exact = parse(amount)
            if exact.rounded_to_milli() is not exact:
                resources[name] = exact.rounded_to_milli().text()  # type: ignore[index]


def _fill_priority(pod: Object, classes: PriorityClasses) -> None:
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    known = classes.by_name.get(name) if name else classes.default
    if name and known is None and "priority" not in spec:
        reason = f'no PriorityClass with name "{name}" was found'
        key = f"{pod['metadata']['namespace']}/{pod['metadata'].get('name', '')}"
        raise ObjectError("Pod", key, reason, "spec.priorityClassName")
    chosen = known or PriorityClass()
    if not name and known is not None and "priority" not in spec:
        spec["priorityClassName"] = known.metadata.name
    spec.setdefault("priority", chosen.value)
    spec.setdefault("preemptionPolicy", chosen.preemption_policy)


def _fill_spreading(spec: Object) -> None:
    for constraint in spec.get("topologySpreadConstraints", ()):
        constraint.setdefault("nodeAffinityPolicy", "Honor")
        constraint.setdefault("nodeTaintsPolicy", "Ignore")


def merge_label_keys(spec: Object, labels: Mapping[str, str]) -> None:
    """Add matchLabelKeys and mismatchLabelKeys of a pod's terms as requirements to the terms' label selectors.

    A selector that already has a requirement on such a key comes from an API server, because users must not write both.
    It keeps the label's value from the pod's creation.
    """
    for term in (*spec.get("topologySpreadConstraints", ()), *_affinity_terms(spec.get("affinity", {}))):
        for keys, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            known = [key for key in term.get(keys, ()) if key in labels]
            if known and term.get("labelSelector") is not None:
                _demand(term["labelSelector"], operator, {key: labels[key] for key in known})


def _demand(selector: Object, operator: str, labels: Mapping[str, str]) -> None:
    expressions = selector.setdefault("matchExpressions", [])
    written = {(one.get("key"), one.get("operator")) for one in expressions}
    expressions += [
        {"key": key, "operator": operator, "values": [value]}
        for key, value in labels.items()
        if (key, operator) not in written
    ]


def _affinity_terms(affinity: Object) -> list[Object]:
    when = "DuringSchedulingIgnoredDuringExecution"
    parts = [affinity.get(name, {}) for name in ("podAffinity", "podAntiAffinity")]
    required = [term for part in parts for term in part.get(f"required{when}", ())]
    weighted = [term for part in parts for term in part.get(f"preferred{when}", ())]
    return required + [one["podAffinityTerm"] for one in weighted if "podAffinityTerm" in one]
