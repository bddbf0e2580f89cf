"""Sums of pods with many containers, in thousandths as plain integers, where no amount is odd or very large.

Sums of amounts that are negative, finer than a thousandth, or so large that they leave 64 bits depend on the order and
the form in which Go adds them up: of such a resource nothing is said here, and `policysched.model.requests` adds its
amounts one by one.
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
"""How long a text may be that is remembered with what it says."""
_LARGEST_EXPONENT: Final = 20


class OwnAmounts(NamedTuple):
    """What each container counts as; one that names a resource has its amount."""

    main: Sequence[Thousandths]
    initial: Sequence[Thousandths]
    odd: Set[str]
    """The resources of which some amount is odd; no container has that one."""


def own_amounts(pod: Pod, statuses: Mapping[str, ContainerStatus], *, resize_counts: bool) -> OwnAmounts:
    """Read what each container of a pod counts as.

    Args:
        pod: The pod.
        statuses: What the kubelet reports of containers, by name.
        resize_counts: Whether what the spec says counts where a status says something else.

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
    """Add up what the containers of a pod count as at their largest moment; name the resources of which this is odd.

    Args:
        pod: The pod.
        own: What they count as.
        missing: What counts for containers that do not name a resource.
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
    """Name the resources of which the overhead of a pod, which is added later, makes the sum odd."""
    odd: set[str] = set()
    for name, text in pod.spec.overhead.items():
        amount = _read(text)
        if amount == _ODD or total.get(name, 0) + amount > MAX:
            odd.add(name)
    return odd


def restarts(container: Container) -> bool:
    """Return whether an init container runs beside everything after it."""
    return container.restart_policy == "Always"


def _effective(
    container: Container, status: ContainerStatus | None, odd: set[str], *, resize_counts: bool
) -> Thousandths:
    """Return the largest amounts that may be in use, those of a resize included."""
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
