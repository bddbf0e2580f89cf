"""Sums of the requests of pods with many containers, as integers in thousandths, for ordinary amounts.

Sums of negative amounts, amounts finer than a thousandth and amounts beyond 64 bits depend on the order of Go's
additions. These amounts are odd: their resources are only named here, and `policysched.model.requests` adds them one by
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import Final, NamedTuple

from policysched.model.objects import Amount, Container, ContainerStatus, Pod, ResourceList
from policysched.model.quantity import MAX, Quantity, parse

Thousandths = dict[str, int]
"""Amounts by resource name."""
_ODD: Final = -1
_FINEST: Final = -3
_LONGEST: Final = 40
"""Largest length of a quantity whose parsed amount is cached; a longer one counts as odd. Units: characters."""
_LARGEST_EXPONENT: Final = 20


class OwnAmounts(NamedTuple):
    """Amounts of each container by the resources that it names, without odd amounts."""

    main: Sequence[Thousandths]
    initial: Sequence[Thousandths]
    odd: Set[str]
    """Resources with an odd amount in some container; that container's amount is missing."""


def own_amounts(pod: Pod, statuses: Mapping[str, ContainerStatus], *, resize_counts: bool) -> OwnAmounts:
    """Return the amounts of each container of a pod.

    Args:
        pod: The pod.
        statuses: Statuses of containers from the kubelet, by name.
        resize_counts: Whether the spec counts in addition to a status with different resources.

    Raises:
        QuantityError: an amount is malformed.
    """
    spec, reports = pod.spec, statuses.get
    odd: set[str] = set()
    main = [_effective(one, reports(one.name), odd, resize_counts=resize_counts) for one in spec.containers]
    initial = [
        _effective(one, reports(one.name) if restarts(one) else None, odd, resize_counts=resize_counts)
        for one in spec.init_containers
    ]
    return OwnAmounts(main, initial, odd)


def added_up(pod: Pod, own: OwnAmounts, missing: Mapping[str, Quantity]) -> tuple[dict[str, Quantity], Set[str]]:
    """Return the sum of a pod's container amounts at their maximum, and the resources whose sum is odd.

    Args:
        pod: The pod.
        own: Amounts of the containers.
        missing: Amounts for containers that do not name a resource.
    """
    defaults = {name: _thousandths(amount) for name, amount in missing.items()}
    total: Thousandths = {}
    for amounts in own.main:
        _add(total, amounts, defaults)
    beside: Thousandths = {}
    peak: Thousandths = {}
    for container, amounts in zip(pod.spec.init_containers, own.initial, strict=True):
        if restarts(container):
            _add(beside, amounts, defaults)
        else:
            for name, amount in (defaults | amounts).items():
                peak[name] = max(peak.get(name, 0), amount + beside.get(name, 0))
    _add(total, beside, {})
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
    odd = own.odd | {name for name, amount in total.items() if amount > MAX} | _odd_with_overhead(pod, total)
    return {name: _quantity(amount) for name, amount in total.items() if name not in odd}, odd


def _odd_with_overhead(pod: Pod, total: Thousandths) -> Set[str]:
    """Return the resources whose sum becomes odd with the pod's overhead, which is added later."""
    odd: set[str] = set()
    for name, text in pod.spec.overhead.items():
        amount = _read(text)
        if amount == _ODD or total.get(name, 0) + amount > MAX:
            odd.add(name)
    return odd


def restarts(container: Container) -> bool:
    """Return whether an init container keeps running beside the later containers."""
    return container.restart_policy == "Always"


def _effective(
    container: Container, status: ContainerStatus | None, odd: set[str], *, resize_counts: bool
) -> Thousandths:
    """Return the largest amounts that may be in use, including those of a resize."""
    own: Thousandths = {}
    is_resized = status is not None and status.resources is not None
    if resize_counts or not is_resized:
        _raise_to(own, container.resources.requests, odd)
    if status is not None and status.resources is not None:
        _raise_to(own, status.resources.requests, odd)
        _raise_to(own, status.allocated_resources, odd)
    return own


def _raise_to(own: Thousandths, others: ResourceList, odd: set[str]) -> None:
    for name, text in others.items():
        amount = _read(text)
        if amount > own.get(name, _ODD):
            own[name] = amount
        elif amount == _ODD:
            odd.add(name)


def _add(total: Thousandths, more: Thousandths, defaults: Thousandths) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
    for name, amount in defaults.items():
        if name not in more:
            total[name] = total.get(name, 0) + amount


def _read(amount: Amount) -> int:
    return _remembered(amount) if type(amount) is str and len(amount) <= _LONGEST else _ODD


@lru_cache(1 << 12)
def _remembered(text: str) -> int:
    return _thousandths(parse(text))


def _thousandths(amount: Quantity) -> int:
    if amount.wide or amount.mantissa < 0 or not _FINEST <= amount.exponent <= _LARGEST_EXPONENT:
        return _ODD
    found = int(amount.mantissa * 10 ** (amount.exponent - _FINEST))
    return found if found <= MAX else _ODD


def _quantity(thousandths: int) -> Quantity:
    whole, rest = divmod(thousandths, 1000)
    return Quantity(thousandths, _FINEST) if rest else Quantity(whole)
