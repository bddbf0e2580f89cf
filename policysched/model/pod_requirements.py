"""What a pod requires: host ports, images, node features; also its priority and quality of service.

`policysched.state` has the columns of used ports and of images. A port without an address means every address, without
a protocol TCP. Images have the names that nodes report. A pod without a priority has priority 0, as one created before
a default class existed.

Source: pkg/scheduler/util/utils.go (GetHostPorts), kube-scheduler/framework/types.go (HostPortInfo),
plugins/imagelocality/image_locality.go (normalizedImageName), component-helpers/nodedeclaredfeatures (features/),
component-helpers/scheduling/corev1/helpers.go (PodPriority), pkg/apis/scheduling/types.go,
pkg/apis/core/v1/helper/qos/qos.go, v1.36, v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from policysched.model.objects import Pod, ResourceList, ResourceRequirements
from policysched.model.objects.pods import Container, EphemeralContainer, PodSpec
from policysched.model.quantity import ZERO, Quantity, parse

MIRROR: Final = "kubernetes.io/config.mirror"
"""Annotation that marks the API object of a static pod."""
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - a wildcard to compare with, nothing is bound to it


class HostPort(NamedTuple):
    """A host port that a pod uses; address and protocol are set."""

    address: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports that a pod uses, without duplicates.

    Restartable init containers run as long as the pod, so their ports are included; ports of other init containers are
    not.
    """
    lasting = [one for one in pod.spec.init_containers if one.restart_policy == "Always"]
    ports = (port for one in (*lasting, *pod.spec.containers) for port in one.ports if port.host_port > 0)
    return tuple(
        dict.fromkeys(HostPort(one.host_ip or ANY_ADDRESS, one.protocol or "TCP", one.host_port) for one in ports)
    )


def conflict(wanted: HostPort, used: HostPort) -> bool:
    """Return whether two host ports conflict on a node: same protocol and port, and overlapping addresses."""
    if (wanted.protocol, wanted.port) != (used.protocol, used.port):
        return False
    return ANY_ADDRESS in (wanted.address, used.address) or wanted.address == used.address


def any_conflict(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Return whether any wanted host port conflicts with any used host port."""
    taken: dict[tuple[str, int], list[HostPort]] = {}
    for one in used:
        taken.setdefault((one.protocol, one.port), []).append(one)
    return any(conflict(port, other) for port in wanted for other in taken.get((port.protocol, port.port), ()))


def normalized_image_name(name: str) -> str:
    """Return an image name with `:latest` added if it has neither tag nor digest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def pod_images(pod: Pod) -> tuple[str, ...]:
    """Return the images of a pod's containers, init containers and image volumes; an image may occur several times."""
    spec = pod.spec
    references = [one.image for one in (*spec.init_containers, *spec.containers)]
    references += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(normalized_image_name(reference) for reference in references)


def container_count(pod: Pod) -> int:
    """Return the number of a pod's init containers and containers."""
    return len(pod.spec.init_containers) + len(pod.spec.containers)


def required_features(pod: Pod, known: Collection[str]) -> frozenset[str]:
    """Return the features, among those that nodes can declare, that a pod's spec requires.

    Args:
        pod: The pod.
        known: The features of the release.
    """
    return frozenset(name for name, is_needed in _NEEDED.items() if name in known and is_needed(pod.spec))


def _restarts_all(spec: PodSpec) -> bool:
    rules = (rule for one in (*spec.containers, *spec.init_containers) for rule in one.restart_policy_rules)
    return any(rule.action == "RestartAllContainers" for rule in rules)


def _has_mount_options(spec: PodSpec) -> bool:
    return any(mount.bind_mount_options for one in _all_containers(spec) for mount in one.volume_mounts)


def _has_mldsa_certificate(spec: PodSpec) -> bool:
    parts = (part for one in spec.volumes if one.projected is not None for part in one.projected.sources)
    certificates = (part.pod_certificate for part in parts)
    return any(one is not None and one.key_type in ("MLDSA44", "MLDSA65", "MLDSA87") for one in certificates)


def _has_oci_profile(spec: PodSpec) -> bool:
    contexts = (spec.security_context, *(one.security_context for one in _all_containers(spec)))
    profiles = (one.seccomp_profile for one in contexts if one is not None)
    return any(one is not None and one.type == "OCI" for one in profiles)


def _all_containers(spec: PodSpec) -> Iterator[Container | EphemeralContainer]:
    yield from spec.containers
    yield from spec.init_containers
    yield from spec.ephemeral_containers


_NEEDED: Final[Mapping[str, Callable[[PodSpec], bool]]] = {
    "PodCertificateMLDSA": _has_mldsa_certificate,
    "RestartAllContainersOnContainerExits": _restarts_all,
    "SecurityProfileOCI": _has_oci_profile,
    "UserNamespacesHostNetworkSupport": lambda spec: spec.host_network and spec.host_users is False,
    "VolumeBindMountOptions": _has_mount_options,
}
"""For each node feature that a pod can require: a function that returns whether a pod's spec requires it."""


def declared_features(names: Iterable[str], known: Sequence[str]) -> frozenset[str]:
    """Return the features that a node declares and that are in `known`.

    As in kube-scheduler, the list is merged with the sorted registry from left to right, so a name out of order in
    `status.declaredFeatures` is ignored.

    Args:
        names: The names that the node declares.
        known: The features of the release, sorted.
    """
    found = set()
    position = 0
    for name in names:
        while position < len(known) and known[position] < name:
            position += 1
        if position < len(known) and known[position] == name:
            found.add(name)
            position += 1
    return frozenset(found)


SYSTEM_PRIORITY: Final = 2_000_000_000
"""Lowest priority that is reserved for system pods."""

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_COMPUTE: Final = ("cpu", "memory")


def pod_priority(pod: Pod) -> int:
    """Return the priority of a pod; 0 if the pod has none."""
    return pod.spec.priority or 0


def is_system(pod: Pod) -> bool:
    """Return whether a pod has a priority that is reserved for system pods."""
    return pod_priority(pod) >= SYSTEM_PRIORITY


def is_static(pod: Pod) -> bool:
    """Return whether the kubelet runs the pod from a file, so that no scheduler places it.

    Source: pkg/kubelet/types/pod_update.go (IsMirrorPod, IsNodeOwnedPod), v1.36.
    """
    return MIRROR in pod.metadata.annotations or any(one.kind == "Node" for one in pod.metadata.owner_references)


def qos_class(pod: Pod) -> str:
    """Return the pod's quality-of-service class from its status, otherwise from its resources.

    The class depends on cpu and memory of the pod as a whole if given, otherwise of all containers.
    """
    if pod.status.qos_class:
        return pod.status.qos_class
    if pod.spec.resources is not None:
        parts = [pod.spec.resources]
        limited = not pod.spec.resources.limits or _limits_all(pod.spec.resources)
    else:
        parts = [one.resources for one in (*pod.spec.containers, *pod.spec.init_containers)]
        if not any(part.limits for part in parts):
            return BURSTABLE if any(map(_asks_for_any, parts)) else BEST_EFFORT
        limited = all(_limits_all(part) for part in parts)
    requests = _sums(part.requests for part in parts)
    limits = _sums(part.limits for part in parts)
    if not requests and not limits:
        return BEST_EFFORT
    equal = requests.keys() == limits.keys() and all(limits[name].equals(requests[name]) for name in requests)
    return GUARANTEED if limited and equal else BURSTABLE


def _limits_all(resources: ResourceRequirements) -> bool:
    return all(name in resources.limits and _positive(resources.limits[name]) for name in _COMPUTE)


def _asks_for_any(resources: ResourceRequirements) -> bool:
    return any(name in resources.requests and _positive(resources.requests[name]) for name in _COMPUTE)


def _sums(lists: Iterable[ResourceList]) -> dict[str, Quantity]:
    sums: dict[str, Quantity] = {}
    for resources in lists:
        for name in _COMPUTE:
            if name in resources and _positive(resources[name]):
                sums[name] = sums.get(name, ZERO).plus(parse(resources[name]))
    return sums


def _positive(amount: str | float) -> bool:
    return parse(amount).mantissa > 0
