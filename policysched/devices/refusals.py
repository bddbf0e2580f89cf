"""`Refusals`: the reasons why devices of a node do not fit a request, for reports to users.

The search does not compute reasons: it works on sets of devices.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from policysched.budget import Budget
from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.slices import CounterName
from policysched.devices.requests.plans import DeviceAsk
from policysched.devices.requests.requirements import DeviceKind, DeviceRequirement, Suitability
from policysched.devices.search_space import SearchSpace

_STEPS_A_DEVICE: Final = 2


class Refusals(NamedTuple):
    """The reasons why devices of a node do not fit a request or alternative of a claim.

    Attributes:
        claim: The place of the claim among those of the pod.
        request: The name of the request or alternative.
        asked: Number of requested devices, 0 for all.
        fitting: Number of devices that fit, each by itself.
        reasons: Number of devices by reason.
    """

    claim: int
    request: str
    asked: int
    fitting: int
    reasons: Counter[str]


def refusals_of(ask: DeviceAsk, requirement: DeviceRequirement, space: SearchSpace, steps: Budget) -> Refusals:
    """Return the reasons why devices of a node do not fit one request.

    Raises:
        BudgetExceededError: The budget is used up.
    """
    checks = _Checks(ask, requirement, space, steps)
    reasons: Counter[str] = Counter()
    for _, view in space.pools:
        if not view.is_usable:
            state = "being updated" if view.is_incomplete else "invalid"
            reasons[f"pool {view.pool} is {state}"] += 1
    fitting = 0
    for device in range(len(space.kinds)):
        reason = checks.reason(device)
        reasons.update([reason] if reason else [])
        fitting += not reason
    return Refusals(ask.claim, ask.full_name, ask.count, fitting, reasons)


class _Checks:
    """Checks the devices of a node against one request, to find the reason for each device."""

    def __init__(self, ask: DeviceAsk, requirement: DeviceRequirement, space: SearchSpace, steps: Budget) -> None:
        self._ask, self._requirement, self._space, self._steps = ask, requirement, space, steps
        self._refused: dict[int, str] = {}
        self._suited: dict[int, Suitability] = {}

    def reason(self, device: int) -> str:
        """Return why a device does not fit the request; empty if it fits."""
        ask, space = self._ask, self._space
        self._steps.spend(_STEPS_A_DEVICE)
        kind = space.kinds[device]
        if space.used >> device & 1 and not ask.is_admin:
            return "in use"
        if reason := self._refusal(kind):
            return reason
        if not (space.able[ask.requirement] | space.failing[ask.requirement]) >> device & 1:
            return "not for this node"
        suitability = self._suitability(kind)
        takes = suitability.consumption
        if kind.traits.shareable and takes is not None and not takes.fits(space.consumed.get(device)):
            return "its capacity is used up"
        if kind.traits.counter_sets and self._lacks_counters(device):
            return "its counters are used up"
        return "" if suitability.is_tolerated else "its taints are not tolerated"

    def _refusal(self, kind: DeviceKind) -> str:
        known = self._refused.get(kind.number)
        if known is None:
            known, effort = self._requirement.refusal(kind)
            self._refused[kind.number] = known
            self._steps.spend(effort)
            kind.forget_variables()
        return known

    def _suitability(self, kind: DeviceKind) -> Suitability:
        known = self._suited.get(kind.number)
        if known is None:
            found, effort = self._requirement.suitability(kind, sys.maxsize)
            assert found is not None  # noqa: S101 - the limit is larger than any effort
            known = self._suited[kind.number] = found
            self._steps.spend(effort)
            kind.forget_variables()
        return known

    def _lacks_counters(self, device: int) -> bool:
        available, kind = self._space.available[self._space.pool_of(device)], self._space.kinds[device]
        self._steps.spend(len(available) + len(kind.traits.counters))
        return _lacks_counters(available, kind)


def _lacks_counters(available: Mapping[CounterName, Number], kind: DeviceKind) -> bool:
    """Return whether a counter of the pool is insufficient for a device, or is already negative."""
    takes: dict[CounterName, Number] = {}
    for name, each, amount in kind.traits.counters:
        takes[name, each] = takes.get((name, each), 0) + amount
    return any(left < takes.get(name, 0) for name, left in available.items())
