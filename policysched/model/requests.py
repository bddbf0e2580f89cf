"""Resource requests of pods as the scheduler counts them, and allocatable resources of nodes.

This module knows objects and quantities, but no columns and no plugins. A pending pod counts with its spec. A placed
pod counts with the maximum of spec, allocation and the kubelet's actual values (in-place resize). So there are two
families of functions, `incoming_*` and `placed_*`, one for each use in kube-scheduler.

Source: component-helpers/resource/helpers.go, pkg/scheduler/framework/types.go (CalculateResource,
NewResource), plugins/noderesources fit.go and resource_allocation.go, v1.36 with its default feature gates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias
from weakref import ref

from policysched.model import quantity
from policysched.model.objects import (
    Amount,
    Container,
    ContainerStatus,
    Node,
    Pod,
    ResourceList,
    ResourceRequirements,
)
from policysched.model.quantity import ZERO, Quantity
from policysched.model.selection.name_validation import is_pod_level_resource, is_scalar_resource_name

Amounts = dict[str, Quantity]
"""Exact amounts by resource name; they are rounded once, at the end."""

CPU, MEMORY, EPHEMERAL, PODS = "cpu", "memory", "ephemeral-storage", "pods"
MOST_EXTENDED: Final = 1024
"""Largest number of extended resources of a node that are counted, in order of names; further ones are ignored."""
FEW_STATED: Final = 16
"""Largest number of resources on a node for which the parsed result is cached."""
LONGEST_STATED: Final = 100
"""Longest resource name plus amount for which the result is cached. Units: characters."""
DEFAULT_AMOUNTS: Final[Mapping[str, Quantity]] = {
    CPU: Quantity(100, -3),
    MEMORY: Quantity(200 * 1024 * 1024),
}
"""Amounts that scores assume for a container without a request, so that every pod has some weight."""
MANY_CONTAINERS: Final = 64
"""Number of containers above which the sums of a pod are cached, for the two pods counted last."""


@dataclass(frozen=True, slots=True)
class Requests:
    """Amounts of resources.

    Units: cpu in thousandths, others in whole units; scalars are sorted by name and include zeros.
    """

    cpu_millis: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0
    scalars: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Allocatable:
    """Allocatable amounts of a node; units as in `Requests`."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0
    pods: int = 0
    scalars: tuple[tuple[str, int], ...] = ()


def incoming_requests(pod: Pod) -> Requests:
    """Return the requests of a pending pod, as NodeResourcesFit counts them; no amount is negative."""
    return _requests(pod_amounts(pod), lowest=0)


def incoming_amounts(pod: Pod, resources: Iterable[str], *, nonzero: bool = False) -> list[int]:
    """Return the amounts of some resources that a pending pod requests, as scorers count them.

    Args:
        pod: the pod.
        resources: resource names of any kind.
        nonzero: whether a container without a request counts with 100m and 200Mi, as LeastAllocated and MostAllocated
            count; these ignore pod-level requests and resizes. BalancedAllocation counts real requests.

    Units: cpu in thousandths, the others whole.
    """
    if nonzero:
        amounts = _with_overhead(container_amounts(pod, use_status=False, missing=DEFAULT_AMOUNTS), pod)
    else:
        amounts = pod_amounts(pod, use_status=True)
    return [_scaled(amounts, resource) for resource in resources]


def counted_parts(pod: Pod) -> tuple[object, ...]:
    """Return all parts of a pod that affect its amounts on a node, as a key for caches."""
    spec, status = pod.spec, pod.status
    return (
        spec.containers,
        spec.init_containers,
        spec.overhead,
        spec.resources,
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
        _resize_is_infeasible(pod),
    )


def placed_requests(pod: Pod) -> Requests:
    """Return the amounts that a placed pod uses on its node."""
    return _requests(pod_amounts(pod, use_status=True))


def placed_nonzero(pod: Pod) -> tuple[int, int]:
    """Return cpu (thousandths) and memory (bytes) of a placed pod as scores count them.

    Missing: a container without a request counts as 100m and 200Mi; where the pod as a whole has requests,
    only for a resource that neither the pod nor a container names.
    """
    missing = DEFAULT_AMOUNTS
    if _has_pod_level_requests(pod):
        amounts = pod_amounts(pod, use_status=True)
        missing = {name: amount for name, amount in DEFAULT_AMOUNTS.items() if name not in amounts}
    if missing:
        amounts = pod_amounts(pod, use_status=True, missing=missing)
    return _scaled(amounts, CPU), _scaled(amounts, MEMORY)


def allocatable(node: Node) -> Allocatable:
    """Return the allocatable amounts of a node; cached for nodes that state the same few short texts."""
    stated = node.status.allocatable
    if len(stated) <= FEW_STATED and all(
        type(amount) is str and len(name) + len(amount) <= LONGEST_STATED for name, amount in stated.items()
    ):
        return _allocatable_of(tuple(stated.items()))
    return _allocatable(stated)


@lru_cache(1024)
def _allocatable_of(stated: tuple[tuple[str, Amount], ...]) -> Allocatable:
    return _allocatable(dict(stated))


def _allocatable(stated: ResourceList) -> Allocatable:
    if len(stated) > MOST_EXTENDED:
        scalars = islice((name for name in sorted(stated) if is_scalar_resource_name(name)), MOST_EXTENDED)
        stated = {name: stated[name] for name in (CPU, MEMORY, EPHEMERAL, PODS, *scalars) if name in stated}
    amounts = parsed(stated)
    counted = _requests(amounts)
    return Allocatable(
        cpu_millis=counted.cpu_millis,
        memory_bytes=counted.memory_bytes,
        ephemeral_bytes=counted.ephemeral_bytes,
        pods=_scaled(amounts, PODS),
        scalars=counted.scalars,
    )


def pod_amounts(pod: Pod, *, use_status: bool = False, missing: Mapping[str, Quantity] | None = None) -> Amounts:
    """Return the sum of a pod: containers, replaced by pod-level requests where given, plus overhead.

    Args:
        pod: the pod.
        use_status: whether to consider what the kubelet reports about a resize.
        missing: amounts for containers without a request.
    """
    amounts = container_amounts(pod, use_status=use_status, missing=missing or {})
    if _has_pod_level_requests(pod):
        amounts |= _pod_level_amounts(pod, use_status=use_status)
    return _with_overhead(amounts, pod)


_Sums: TypeAlias = dict[tuple[bool, tuple[tuple[str, Quantity], ...]], Amounts]
"""Sums of a pod, by whether a status has other amounts and by the amounts for containers without a request."""


class _LargePods:
    """Cached sums of the two pods with many containers that were counted last.

    A cycle and its plugins need several sums of the same pod; a comparison of two versions needs those of both.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[tuple[ref[Pod], _Sums], ...] = ()

    def sums_of(self, pod: Pod) -> _Sums:
        """Return the cache of a pod, to which callers add; it lives as long as the pod. Thread-safe."""
        last = self._last
        for one, sums in last:
            if one() is pod:
                return sums
        made: _Sums = {}
        self._last = (ref(pod, lambda _: made.clear()), made), *last[:1]
        return made


_large_pods: Final = _LargePods()


def container_amounts(pod: Pod, *, use_status: bool, missing: Mapping[str, Quantity]) -> Amounts:
    """Return the sum of a pod's containers.

    Restartable init containers run in parallel with everything after them. Another init container runs alone with the
    restartable ones before it, so only the largest of these sums matters. For each init container only the resources
    that it names are compared; in the others its sum cannot be larger.

    Cost: O(containers); for a pod with many containers each sum is computed once.
    """
    statuses = _statuses(pod) if use_status else {}
    if len(pod.spec.containers) + len(pod.spec.init_containers) <= MANY_CONTAINERS:
        return _container_amounts(pod, statuses, missing)
    sums = _large_pods.sums_of(pod)
    is_resized = any(one.resources is not None for one in statuses.values())
    key = is_resized, tuple(missing.items())
    if key not in sums:
        sums[key] = _container_amounts(pod, statuses, missing)
    return dict(sums[key])


def _container_amounts(pod: Pod, statuses: Mapping[str, ContainerStatus], missing: Mapping[str, Quantity]) -> Amounts:
    counts = not _resize_is_infeasible(pod)
    main = [_container(one, statuses, missing, resize_counts=counts) for one in pod.spec.containers]
    initial = [
        _container(one, statuses if _restarts(one) else {}, missing, resize_counts=counts)
        for one in pod.spec.init_containers
    ]
    return _together(pod, main, initial)


def pod_limits(pod: Pod) -> Amounts:
    """Return the sum of a pod's limits in its spec; overhead is added for limited resources.

    Source: component-helpers/resource/helpers.go (PodLimits).
    """
    spec = pod.spec
    main, initial = ([parsed(one.resources.limits) for one in of] for of in (spec.containers, spec.init_containers))
    limits = _together(pod, main, initial)
    of_pod = parsed(spec.resources.limits) if spec.resources is not None else {}
    limits |= {name: amount for name, amount in of_pod.items() if is_pod_level_resource(name)}
    _add(limits, {name: more for name, more in parsed(spec.overhead).items() if not limits.get(name, ZERO).is_zero})
    return limits


def _together(pod: Pod, main: Iterable[Amounts], initial: Iterable[Amounts]) -> Amounts:
    """Return the sum of containers that run in parallel, or of an init container and those before it if larger."""
    total: Amounts = {}
    for own in main:
        _add(total, own)
    beside: Amounts = {}
    peak: Amounts = {}
    for container, own in zip(pod.spec.init_containers, initial, strict=True):
        if _restarts(container):
            _add(total, own)
            _add(beside, own)
            moment = {name: beside[name] for name in own}
        else:
            moment = {name: amount.plus(beside[name]) if name in beside else amount for name, amount in own.items()}
        _raise_to(peak, moment)
    _raise_to(total, peak)
    return total


def _restarts(container: Container) -> bool:
    return container.restart_policy == "Always"


def _with_overhead(amounts: Amounts, pod: Pod) -> Amounts:
    _add(amounts, parsed(pod.spec.overhead))
    return amounts


def parsed(resources: ResourceList) -> Amounts:
    """Parse all quantities of a resource list."""
    return {name: quantity.parse(amount) for name, amount in resources.items()}


def _container(
    container: Container,
    statuses: Mapping[str, ContainerStatus],
    missing: Mapping[str, Quantity],
    *,
    resize_counts: bool,
) -> Amounts:
    amounts = parsed(container.resources.requests)
    status = statuses.get(container.name)
    if status is not None and status.resources is not None:
        actual, allocated = parsed(status.resources.requests), parsed(status.allocated_resources)
        amounts = _effective(amounts, actual, allocated, resize_counts=resize_counts)
    for name, amount in missing.items():
        amounts.setdefault(name, amount)
    return amounts


def _pod_level_amounts(pod: Pod, *, use_status: bool) -> Amounts:
    resources = pod.spec.resources or ResourceRequirements()
    wanted = {name: amount for name, amount in parsed(resources.requests).items() if is_pod_level_resource(name)}
    if not use_status or pod.status.resources is None:
        return wanted
    status, counts = pod.status, not _resize_is_infeasible(pod)
    actual, allocated = parsed(pod.status.resources.requests), parsed(status.allocated_resources)
    effective = _effective(wanted, actual, allocated, resize_counts=counts)
    return {name: effective.get(name, ZERO) for name in wanted}


def _effective(wanted: Amounts, actual: Amounts, allocated: Amounts, *, resize_counts: bool) -> Amounts:
    """Return the largest amounts that may be in use during a resize.

    A resize that the node can never grant is ignored.
    """
    amounts = dict(wanted) if resize_counts else {}
    _raise_to(amounts, actual)
    _raise_to(amounts, allocated)
    return amounts


def _resize_is_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(is_pod_level_resource(name) for name in resources.requests)


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    status = pod.status
    return {one.name: one for one in (*status.container_statuses, *status.init_container_statuses)}


def _add(total: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total[name].plus(amount) if name in total else amount


def _raise_to(total: Amounts, other: Mapping[str, Quantity]) -> None:
    for name, amount in other.items():
        total[name] = total[name].largest(amount) if name in total else amount


def _scaled(amounts: Amounts, resource: str) -> int:
    return amounts.get(resource, ZERO).scaled(-3 if resource == CPU else 0)


def _requests(amounts: Amounts, lowest: int | None = None) -> Requests:
    counted = {
        name: _scaled(amounts, name) if lowest is None else max(lowest, _scaled(amounts, name))
        for name in sorted(amounts)
        if name in (CPU, MEMORY, EPHEMERAL) or is_scalar_resource_name(name)
    }
    return Requests(
        cpu_millis=counted.pop(CPU, 0),
        memory_bytes=counted.pop(MEMORY, 0),
        ephemeral_bytes=counted.pop(EPHEMERAL, 0),
        scalars=tuple(counted.items()),
    )
