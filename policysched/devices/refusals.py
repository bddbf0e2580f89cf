"""Why the devices of a node do not serve a request: for people, in the order in which the search looks.

The search itself never asks so: it works on all devices at once and stops at the first that does not fit.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import NamedTuple

from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.pools import CounterName, PoolView
from policysched.devices.requests.plans import DeviceAsk
from policysched.devices.requests.requirements import DeviceKind, DeviceRequirement
from policysched.devices.search_space import SearchSpace


class Refusals(NamedTuple):
    """What stands against the devices of a node, for one request or alternative of a claim."""

    claim: int
    request: str
    asked: int
    """How many devices it wants; 0 for all."""
    fitting: int
    """How many devices would serve it, each by itself."""
    reasons: Counter[str]
    """How many devices are out for each reason."""


def refusals_of(ask: DeviceAsk, requirement: DeviceRequirement, space: SearchSpace) -> Refusals:
    """Look at every device of a node for one request."""
    reasons: Counter[str] = Counter()
    for _, view in space.pools:
        if not view.is_usable:
            state = "being updated" if view.is_incomplete else "invalid"
            reasons[f"pool {view.pool} is {state}"] += 1
    fitting = 0
    for device in range(len(space.kinds)):
        reason = _reason(ask, requirement, space, device)
        reasons.update([reason] if reason else [])
        fitting += not reason
    return Refusals(ask.claim, ask.full_name, ask.count, fitting, reasons)


def _reason(ask: DeviceAsk, requirement: DeviceRequirement, space: SearchSpace, device: int) -> str:
    """Say what keeps a device from serving a request by itself; empty for one that would."""
    kind = space.kinds[device]
    if space.used >> device & 1 and not ask.is_admin:
        return "in use"
    if reason := requirement.refusal(kind):
        return reason
    if not (space.able[ask.requirement] | space.failing[ask.requirement]) >> device & 1:
        return "not for this node"
    suitability, _ = requirement.suitability(kind, sys.maxsize)
    assert suitability is not None  # noqa: S101 - it takes less than that
    takes = suitability.consumption
    if kind.traits.shareable and takes is not None and not takes.fits(space.consumed.get(device)):
        return "its capacity is consumed"
    if kind.traits.counter_sets and _lacks_counters(space.view_of(device), kind):
        return "its counters are taken"
    return "" if suitability.is_tolerated else "its taints are not tolerated"


def _lacks_counters(view: PoolView, kind: DeviceKind) -> bool:
    """Return whether some counter of the pool does not suffice, of those too that the device does not take from."""
    takes: dict[CounterName, Number] = {}
    for name, each, amount in kind.traits.counters:
        takes[name, each] = takes.get((name, each), 0) + amount
    return any(available < takes.get(name, 0) for name, available in view.available.items())
