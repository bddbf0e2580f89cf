"""Resource requests of pods as the scheduler counts them, and allocatable resources of nodes.

This module knows objects and quantities, but no columns and no plugins. A pending pod counts with its spec. A placed
pod counts with the maximum of spec, allocation and the kubelet's actual values (in-place resize), by a rule of the
release: an `AmountsInUse`. So there are two families of functions, `incoming_*` and `placed_*`, one for each use in
kube-scheduler.

Source: component-helpers/resource/helpers.go, pkg/scheduler/framework/types.go (CalculateResource,
NewResource), plugins/noderesources fit.go and resource_allocation.go, v1.36 and v1.37 with default feature gates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
)
from policysched.model.quantity import ZERO, Quantity
from policysched.model.selection.name_validation import is_pod_level_resource, is_scalar_resource_name

Amounts = dict[str, Quantity]
"""Exact amounts by resource name; amounts are rounded only after all additions."""

CPU, MEMORY, EPHEMERAL, PODS = "cpu", "memory", "ephemeral-storage", "pods"
MOST_EXTENDED: Final = 1024
"""Maximum number of a node's extended resources that are read, in the order of names; the others are ignored."""
FEW_STATED: Final = 16
"""Maximum number of resources of a node for which the node's parsed amounts are cached."""
LONGEST_STATED: Final = 100
"""Maximum length of resource name plus amount for which a node's parsed amounts are cached. Units: characters."""
DEFAULT_AMOUNTS: Final[Mapping[str, Quantity]] = {
    CPU: Quantity(100, -3),
    MEMORY: Quantity(200 * 1024 * 1024),
}
"""The requests that scores assume for a container without requests (NonZeroRequested)."""
MANY_CONTAINERS: Final = 64
"""Number of containers above which a pod's sums of amounts are cached, for the two pods summed last."""
NONE_MISSING: Final[Mapping[str, Quantity]] = {}
AmountsInUse: TypeAlias = Callable[[Pod, Mapping[str, Quantity]], Amounts]
"""Function that returns the amounts that a placed pod uses, given the pod and amounts for missing requests.

The two rules are `largest_of_containers` and `largest_of_sums`.
"""


@dataclass(frozen=True, slots=True)
class Requests:
    """The amounts that a pod requests: cpu, memory, ephemeral storage and other resources.

    Units: cpu in thousandths, others in whole units; scalars are sorted by name and include zeros.
    """

    cpu_millis: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0
    scalars: tuple[tuple[str, int], ...] = ()

    @property
    def by_name(self) -> dict[str, int]:
        """The amounts by resource name, with 1 of `pods`; cpu is in millicores."""
        own = {"cpu": self.cpu_millis, "memory": self.memory_bytes, "ephemeral-storage": self.ephemeral_bytes}
        return {**own, "pods": 1, **dict(self.scalars)}


@dataclass(frozen=True, slots=True)
class Allocatable:
    """The allocatable amounts of a node; units are those of `Requests`."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0
    pods: int = 0
    scalars: tuple[tuple[str, int], ...] = ()


def incoming_requests(pod: Pod) -> Requests:
    """Return the requests of a pending pod as NodeResourcesFit computes them; no amount is negative."""
    return _requests(pod_amounts(pod), lowest=0)


def incoming_amounts(pod: Pod, resources: Iterable[str], in_use: AmountsInUse) -> list[int]:
    """Return the amounts of some resources that a pending pod requests, as NodeResourcesBalancedAllocation counts them.

    Args:
        pod: the pod.
        resources: resource names of any kind.
        in_use: the rule for a resize.

    Units: cpu in thousandths, the others whole.
    """
    amounts = in_use(pod, NONE_MISSING)
    return [_scaled(amounts, resource) for resource in resources]


def incoming_nonzero(pod: Pod, resources: Iterable[str], in_use: AmountsInUse | None = None) -> list[int]:
    """Return the amounts of some resources that a pending pod requests, as NodeResourcesFit counts them for scores.

    A container without a request counts with 100m and 200Mi.

    Args:
        pod: the pod.
        resources: resource names of any kind.
        in_use: the rule for a resize; without a rule, pod-level requests and resizes are ignored.

    Units: cpu in thousandths, the others whole.
    """
    if in_use is None:
        amounts = _with_overhead(container_amounts(pod, DEFAULT_AMOUNTS), pod)
    else:
        amounts = in_use(pod, DEFAULT_AMOUNTS)
    return [_scaled(amounts, resource) for resource in resources]


def counted_parts(pod: Pod) -> tuple[object, ...]:
    """Return all parts of a pod that affect the amounts that it uses on a node, as a cache key."""
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


def placed_requests(pod: Pod, in_use: AmountsInUse) -> Requests:
    """Return the amounts that a placed pod uses on its node."""
    return _requests(in_use(pod, NONE_MISSING))


def placed_nonzero(pod: Pod, in_use: AmountsInUse) -> tuple[int, int]:
    """Return the cpu (millicores) and memory (bytes) of a placed pod that scores count (NonZeroRequested).

    Missing: a container without a request counts as 100m and 200Mi; where the pod as a whole has requests,
    only for a resource that neither the pod nor a container names.
    """
    missing = DEFAULT_AMOUNTS
    if _has_pod_level_requests(pod):
        amounts = in_use(pod, NONE_MISSING)
        missing = {name: amount for name, amount in DEFAULT_AMOUNTS.items() if name not in amounts}
    if missing:
        amounts = in_use(pod, missing)
    return _scaled(amounts, CPU), _scaled(amounts, MEMORY)


def allocatable(node: Node) -> Allocatable:
    """Return the allocatable amounts of a node; cached for nodes with few, short amounts."""
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


def pod_amounts(pod: Pod, missing: Mapping[str, Quantity] = NONE_MISSING) -> Amounts:
    """Return a pod's requests: the containers' sum, with pod-level requests where the pod has any, plus overhead.

    Args:
        pod: the pod.
        missing: amounts for containers without a request.
    """
    amounts = container_amounts(pod, missing)
    if _has_pod_level_requests(pod):
        amounts |= _of_pod_level(_pod_level_requests(pod))
    return _with_overhead(amounts, pod)


def largest_of_containers(pod: Pod, missing: Mapping[str, Quantity]) -> Amounts:
    """Return the amounts in use: for each container the largest of requested, allocated and actual amount, summed.

    Statuses without actual values, and of init containers that do not restart, are ignored. The pod-level requests are
    the largest ones too, for the resources that the spec names.
    """
    status = pod.status
    reported = any(one.resources is not None for one in _reports(pod))
    amounts = container_amounts(pod, missing, _largest if reported else _stated)
    if _has_pod_level_requests(pod):
        wanted = _of_pod_level(_pod_level_requests(pod))
        if status.resources is not None:
            stated = {} if _resize_is_infeasible(pod) else wanted
            effective = _largest_of(stated, parsed(status.resources.requests), parsed(status.allocated_resources))
            wanted = {name: effective.get(name, ZERO) for name in wanted}
        amounts |= wanted
    return _with_overhead(amounts, pod)


def largest_of_sums(pod: Pod, missing: Mapping[str, Quantity]) -> Amounts:
    """Return the amounts in use: the largest of the sums of requested, of allocated and of actual amounts.

    A container without a reported amount counts with its spec. Sums that the kubelet reports for the whole pod replace
    those over containers. The pod-level requests are the largest ones too, for each resource that any of them names.
    """
    status, infeasible = pod.status, _resize_is_infeasible(pod)
    if not infeasible and not _reports(pod) and status.resources is None:
        return pod_amounts(pod, missing)
    possible: Amounts = {} if infeasible else container_amounts(pod, missing)
    reported = parsed(status.resources.requests) if status.resources is not None else {}
    allocated = parsed(status.allocated_resources)
    if allocated and reported:
        amounts = _largest_of(possible, reported, allocated)
    else:
        sums = (container_amounts(pod, missing, part) for part in (_allocated, _actual))
        amounts = _largest_of(possible, *sums)
    if _has_pod_level_requests(pod):
        wanted = _pod_level_requests(pod)
        if status.resources is not None:
            wanted = _largest_of({} if infeasible else wanted, reported, allocated)
        amounts |= _of_pod_level(wanted)
    return _with_overhead(amounts, pod)


def amounts_in_use(*, compares_sums: bool) -> AmountsInUse:
    """Return the function for the amounts that a resized pod uses: `largest_of_sums` or `largest_of_containers`."""
    return largest_of_sums if compares_sums else largest_of_containers


_Part: TypeAlias = Callable[[Amounts, Amounts, ContainerStatus | None], Amounts]
"""Function that returns the amounts of one container, from its requests, its feasible requests and its status."""
_Sums: TypeAlias = dict[tuple[_Part, tuple[tuple[str, Quantity], ...]], Amounts]
"""The cached sums of a pod: by the function for a container's amounts, and by amounts for missing requests."""


def _stated(stated: Amounts, possible: Amounts, status: ContainerStatus | None) -> Amounts:  # noqa: ARG001 - a part
    return stated


def _largest(stated: Amounts, possible: Amounts, status: ContainerStatus | None) -> Amounts:
    if status is None or status.resources is None:
        return stated
    return _largest_of(possible, parsed(status.resources.requests), parsed(status.allocated_resources))


def _allocated(stated: Amounts, possible: Amounts, status: ContainerStatus | None) -> Amounts:  # noqa: ARG001 - a part
    return possible if status is None or not status.allocated_resources else parsed(status.allocated_resources)


def _actual(stated: Amounts, possible: Amounts, status: ContainerStatus | None) -> Amounts:
    if status is None or status.resources is None or not status.resources.requests:
        return _allocated(stated, possible, status)
    return parsed(status.resources.requests)


class _LargePods:
    """A cache of summed amounts for the two pods with many containers that were summed last.

    A cycle and its plugins need several sums of the same pod; a comparison of two versions needs those of both.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[tuple[ref[Pod], _Sums], ...] = ()

    def sums_of(self, pod: Pod) -> _Sums:
        """Return the cached sums of a pod, a dictionary to which the caller adds; dropped with the pod. Thread-safe."""
        last = self._last
        for one, sums in last:
            if one() is pod:
                return sums
        made: _Sums = {}
        self._last = (ref(pod, lambda _: made.clear()), made), *last[:1]
        return made


_large_pods: Final = _LargePods()


def container_amounts(pod: Pod, missing: Mapping[str, Quantity] = NONE_MISSING, part: _Part = _stated) -> Amounts:
    """Return the sum of the amounts of a pod's containers.

    Restartable init containers run in parallel with everything after them. Another init container runs alone with the
    restartable ones before it, so only the largest of these sums matters. For each init container only the resources
    that it names are compared; in the others its sum cannot be larger.

    Cost: O(containers); for a pod with many containers each sum is computed once.
    """
    if len(pod.spec.containers) + len(pod.spec.init_containers) <= MANY_CONTAINERS:
        return _container_amounts(pod, missing, part)
    sums = _large_pods.sums_of(pod)
    key = part, tuple(missing.items())
    if key not in sums:
        sums[key] = _container_amounts(pod, missing, part)
    return dict(sums[key])


def _container_amounts(pod: Pod, missing: Mapping[str, Quantity], part: _Part) -> Amounts:
    spec, infeasible = pod.spec, _resize_is_infeasible(pod)
    statuses = {} if part is _stated else {one.name: one for one in _reports(pod)}
    once = {one.name for one in spec.init_containers if not _restarts(one)} if part is _largest else ()

    def amounts_of(container: Container) -> Amounts:
        stated, status = parsed(container.resources.requests), statuses.get(container.name)
        if container.name in once:
            status = None
        return {**missing, **part(stated, {} if infeasible else stated, status)}

    return _together(pod, map(amounts_of, spec.containers), map(amounts_of, spec.init_containers))


def pod_limits(pod: Pod) -> Amounts:
    """Return the sum of a pod's limits; overhead is added for resources that have a limit.

    Source: component-helpers/resource/helpers.go (PodLimits).
    """
    spec = pod.spec
    main, initial = ([parsed(one.resources.limits) for one in of] for of in (spec.containers, spec.init_containers))
    limits = _together(pod, main, initial)
    if spec.resources is not None:
        limits |= _of_pod_level(parsed(spec.resources.limits))
    _add(limits, {name: more for name, more in parsed(spec.overhead).items() if not limits.get(name, ZERO).is_zero})
    return limits


def _together(pod: Pod, main: Iterable[Amounts], initial: Iterable[Amounts]) -> Amounts:
    """Return the sum over containers that run in parallel, or the highest sum during an init container, if higher."""
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
    """Return the parsed quantities of a resource list, by resource name."""
    return {name: quantity.parse(amount) for name, amount in resources.items()}


def _largest_of(*lists: Amounts) -> Amounts:
    """Return the largest amount of each resource among several lists."""
    largest: Amounts = {}
    for one in lists:
        _raise_to(largest, one)
    return largest


def _resize_is_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(is_pod_level_resource(name) for name in resources.requests)


def _pod_level_requests(pod: Pod) -> Amounts:
    return parsed(pod.spec.resources.requests) if pod.spec.resources is not None else {}


def _of_pod_level(amounts: Amounts) -> Amounts:
    """Return only the amounts of resources that a pod can request at pod level."""
    return {name: amount for name, amount in amounts.items() if is_pod_level_resource(name)}


def _reports(pod: Pod) -> tuple[ContainerStatus, ...]:
    return *pod.status.container_statuses, *pod.status.init_container_statuses


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
