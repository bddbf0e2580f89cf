"""How important a pod is: its priority, whether the system needs it, and its quality of service.

Knows pods and quantities. A pod without a priority counts as 0, as one created before any default class existed.

Source: component-helpers/scheduling/corev1/helpers.go (PodPriority), pkg/apis/scheduling/types.go,
pkg/apis/core/v1/helper/qos/qos.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from policysched.model.objects import Pod, ResourceList, ResourceRequirements
from policysched.model.quantity import ZERO, Quantity, parse

SYSTEM_PRIORITY: Final = 2_000_000_000
"""From here on priorities belong to the system's own pods."""

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_COMPUTE: Final = ("cpu", "memory")


def pod_priority(pod: Pod) -> int:
    """Give the pod's priority, 0 where it has none."""
    return pod.spec.priority or 0


def is_system(pod: Pod) -> bool:
    """Tell whether the pod has a priority that only the system's own pods have."""
    return pod_priority(pod) >= SYSTEM_PRIORITY


def qos_class(pod: Pod) -> str:
    """Give the pod's quality of service: what its status says, else what its resources make it."""
    return pod.status.qos_class or _computed_qos(pod)


def _computed_qos(pod: Pod) -> str:
    """Derive it from cpu and memory of the pod as a whole where given, else of all its containers."""
    if pod.spec.resources is not None:
        parts = [pod.spec.resources]
        limited = not pod.spec.resources.limits or _limits_all(pod.spec.resources)
    else:
        parts = [one.resources for one in (*pod.spec.containers, *pod.spec.init_containers)]
        limited = all(_limits_all(part) for part in parts)
    requests = _sums(part.requests for part in parts)
    limits = _sums(part.limits for part in parts)
    if not requests and not limits:
        return BEST_EFFORT
    equal = requests.keys() == limits.keys() and all(limits[name].equals(requests[name]) for name in requests)
    return GUARANTEED if limited and equal else BURSTABLE


def _limits_all(resources: ResourceRequirements) -> bool:
    return all(name in resources.limits and _positive(resources.limits[name]) for name in _COMPUTE)


def _sums(lists: Iterable[ResourceList]) -> dict[str, Quantity]:
    sums: dict[str, Quantity] = {}
    for resources in lists:
        for name in _COMPUTE:
            if name in resources and _positive(resources[name]):
                sums[name] = sums.get(name, ZERO).plus(parse(resources[name]))
    return sums


def _positive(amount: str | float) -> bool:
    return parse(amount).exceeds(ZERO)
