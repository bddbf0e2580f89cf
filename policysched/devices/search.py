"""The search for devices: claim by claim, request by request, device by device; the first full solution is taken.

It is kube-scheduler's, which tries combinations in the order of the devices and takes back what does not lead on. Two
things are left out that cannot change what is found, where nothing but the devices taken so far decides (`is_regular`)
and no selector fails: a request of which fewer devices are left than it needs fails at once, and after a device that
does not lead to a solution those equal to it are not tried.

Source: k8s.io/dynamic-resource-allocation v0.36.4 structured/internal/incubating/allocator_incubating.go (Allocate,
allocateOne, allocateDevice).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.columns import AttributeValue
from policysched.devices.inventory.pools import CounterName
from policysched.devices.requests.capacities import Consumption
from policysched.devices.requests.constraints import AttributeConstraint, fresh, value_of
from policysched.devices.requests.failures import AllocationFailure
from policysched.devices.requests.plans import MOST_RESULTS, DeviceAsk, Plans
from policysched.devices.requests.requirements import Suitability
from policysched.devices.search_space import SearchSpace
from policysched.devices.steps import Steps

_NO_AMOUNTS: Final[Mapping[str, Number]] = {}
_DEVICES_A_STEP: Final = 16_384
"""How many devices of a node make the sets of a search take another step for each device that is tried."""
_POOLS_A_STEP: Final = 16
"""Likewise for pools."""
_PARTS_A_STEP: Final = 2
"""How many constraints, counters or capacities are looked at in a step."""


class AllocationAnswer(IntEnum):
    """What the allocator says of a node."""

    YES = 0
    """All claims can be allocated."""
    NO = 1
    """They cannot: `cannot allocate all claims`."""
    INVALID_POOLS = 2
    """They cannot, and some resource pool of the node is invalid: a `NodeAllocationError`."""
    ERROR = 3
    """An `AllocationError`, which fails the pod as a whole."""
    TIMEOUT = 4
    """An `AllocationTimeoutError`: the steps ran out while this node, or one before it, was asked."""


class TakenDevice(NamedTuple):
    """A device of a solution.

    Attributes:
        pool: The place of its pool among those of the node.
        device: Its place in the pool.
        consumption: What is taken of its capacities, None where it is taken as a whole.
    """

    ask: DeviceAsk
    pool: int
    device: int
    consumption: Consumption | None


class Outcome(NamedTuple):
    """What a search found.

    Attributes:
        failure: Why the answer is ERROR.
        devices: The devices of each claim, in the order of the search; empty where that was not worked out.
        chosen: For each claim the alternative of each request that has some, by the place of the request.
    """

    answer: AllocationAnswer
    failure: AllocationFailure | None = None
    devices: Sequence[Sequence[TakenDevice]] = ()
    chosen: Sequence[Mapping[int, int]] = ()

    @property
    def has_details(self) -> bool:
        """Whether it says more of a node than its answer."""
        return self.failure is not None or any(self.chosen)


class _FailedError(Exception):
    """An error ends the search."""

    def __init__(self, failure: AllocationFailure) -> None:
        super().__init__(failure)
        self.failure = failure


class _Found(Enum):
    YES = 1
    NO = 2
    TOO_MANY = 3
    """The claim would have more devices than it can."""


class _Undo(NamedTuple):
    """What to take back when a device does not lead to a solution."""

    ask: DeviceAsk
    device: int
    is_counted: bool
    share: Mapping[str, Number] | None
    has_share: bool


class DeviceSearch:
    """One search on one node.

    Args:
        plans: the claims.
        space: the node's devices.
        known: for each requirement what is known of kinds of devices.
        steps: what the search may take.
    """

    def __init__(
        self, plans: Plans, space: SearchSpace, known: Sequence[Mapping[int, Suitability]], steps: Steps
    ) -> None:
        self._plans = plans
        self._space = space
        self._known = known
        self._steps = steps
        self._constraints: list[list[tuple[AttributeConstraint, str]]] = [
            [(fresh(one), name) for one, name in claim.constraints] for claim in plans.claims
        ]
        self._taking = [0] * len(plans.claims)
        self._taken = 0
        self._shares: dict[int, Mapping[str, Number]] = {}
        self._counted: dict[int, dict[CounterName, Number]] = {}
        self._devices: list[list[tuple[DeviceAsk, int]]] = [[] for _ in plans.claims]
        self._chosen: list[dict[int, int]] = [{} for _ in plans.claims]
        self._all: dict[int, list[int]] = {}
        self._is_regular = plans.is_regular and not any(space.failing)
        self._beside = len(space.kinds) // _DEVICES_A_STEP + len(space.pools) // _POOLS_A_STEP
        """How many steps a device takes because there are so many others."""
        self._lacking: dict[int, bool] = {}
        """Of each pool whose counters were asked about, whether devices in use take more of some than there is."""

    def run(self) -> Outcome:
        """Search.

        Raises:
            OutOfStepsError: it takes too many steps.
        """
        failure = self._plans.check(self._size) if self._plans.asks_for_all else self._plans.failure
        if failure is not None:
            return Outcome(AllocationAnswer.ERROR, failure)
        try:
            found = self._request(0, 0)
        except _FailedError as failed:
            return Outcome(AllocationAnswer.ERROR, failed.failure)
        if found is _Found.YES:
            return Outcome(
                AllocationAnswer.YES, None, [list(map(self._result, each)) for each in self._devices], self._chosen
            )
        if found is _Found.TOO_MANY:
            return Outcome(AllocationAnswer.ERROR, AllocationFailure("allocation max size exceeded"))
        return Outcome(AllocationAnswer.INVALID_POOLS if self._space.has_invalid_pools else AllocationAnswer.NO)

    def _result(self, taken: tuple[DeviceAsk, int]) -> TakenDevice:
        ask, device = taken
        space, kind = self._space, self._space.kinds[device]
        consumption = self._known[ask.requirement][kind.number].consumption if kind.traits.shareable else None
        return TakenDevice(ask, space.pool_of(device), space.place_in_pool(device), consumption)

    # Requests for all devices

    def _size(self, ask: DeviceAsk) -> int | AllocationFailure:
        """Return how many devices an ask takes, or why that cannot be said."""
        if not ask.is_all:
            return ask.count
        found = self._list_all(ask)
        if isinstance(found, AllocationFailure):
            return found
        self._all[id(ask)] = found
        return len(found)

    def _list_all(self, ask: DeviceAsk) -> list[int] | AllocationFailure:
        """List every device that an ask for all is about, in use or not."""
        space, found = self._space, []
        for place, (at, view) in enumerate(space.pools):
            if not view.is_usable:
                state = "being updated" if view.is_incomplete else "invalid"
                text = f", request {ask.own_name}: asks for all devices, but resource pool "
                return AllocationFailure.of_claim(text, ask.claim).about(place, f" is currently {state}")
            for device in range(at, at + len(view.devices)):
                self._steps.take()
                if space.failing[ask.requirement] >> device & 1:
                    return self._failure(ask, device)
                if self._is_able(ask, device) and self._has_capacity(ask, device):
                    found.append(device)
        return found

    def _is_able(self, ask: DeviceAsk, device: int) -> bool:
        return bool(self._space.able[ask.requirement] >> device & 1)

    def _failure(self, ask: DeviceAsk, device: int) -> AllocationFailure:
        failure = self._known[ask.requirement][self._space.kinds[device].number].failure
        assert failure is not None, "asked about a device of which no selector says an error"  # noqa: S101
        return failure._replace(claim=ask.claim)

    # The search

    def _request(self, claim: int, place: int) -> _Found:
        """Search for a request of a claim and all that come after."""
        self._steps.take()
        claims = self._plans.claims
        if claim >= len(claims):
            return _Found.YES
        if place >= len(claims[claim].requests):
            found = self._request(claim + 1, 0)
            # another choice for this claim may leave more of what the next one can do with fewer devices
            return _Found.NO if found is _Found.TOO_MANY else found
        request = claims[claim].requests[place]
        if not request.has_alternatives:
            return self._ask(request.asks[0], 0, 0)
        return self._alternatives(claim, place, request.asks)

    def _alternatives(self, claim: int, place: int, asks: Iterable[DeviceAsk]) -> _Found:
        all_are_too_many = True
        for number, ask in enumerate(asks):
            found = self._ask(ask, 0, 0)
            if found is _Found.YES:
                self._chosen[claim][place] = number
                return found
            all_are_too_many = all_are_too_many and found is _Found.TOO_MANY
        return _Found.TOO_MANY if all_are_too_many else _Found.NO

    def _ask(self, ask: DeviceAsk, done: int, start: int) -> _Found:
        """Search for the devices of an ask that are still missing, and all that comes after.

        Args:
            ask: what is asked for.
            done: how many of its devices are taken already.
            start: the first device to look at.
        """
        listed = self._all[id(ask)] if ask.is_all else None
        if listed is not None and not listed:
            return _Found.NO
        count = ask.count if listed is None else len(listed)
        if done >= count:
            return self._request(ask.claim, ask.place + 1)
        if len(self._devices[ask.claim]) + count - done > MOST_RESULTS:
            return _Found.TOO_MANY
        if listed is None:
            return self._some(ask, done, start)
        return self._next_of_all(ask, listed[done], done)

    def _next_of_all(self, ask: DeviceAsk, device: int, done: int) -> _Found:
        """Take the next device of an ask for all: there is no other choice."""
        self._steps.take(self._effort(ask, device))
        undo = self._take(ask, device)
        if undo is None:
            return _Found.NO
        found = self._ask(ask, done + 1, 0)
        if found is not _Found.YES:
            self._take_back(undo)
        return found

    def _some(self, ask: DeviceAsk, done: int, start: int) -> _Found:
        """Try the devices from a place on, one after the other."""
        space = self._space
        failing = space.failing[ask.requirement]
        waiting = (space.fit[ask.requirement] | failing) >> start << start
        while True:
            free = waiting & ~self._blocked(ask)
            if not free or (self._is_regular and free.bit_count() < ask.count - done):
                return _Found.NO
            bit = free & -free
            device = bit.bit_length() - 1
            self._steps.take(self._effort(ask, device))
            if failing & bit:
                raise _FailedError(self._failure(ask, device))
            found = self._try(ask, device, done)
            if found is not _Found.NO:
                return found
            waiting = waiting >> (device + 1) << (device + 1)
            if self._is_regular and waiting:
                waiting &= ~self._equal(device)

    def _try(self, ask: DeviceAsk, device: int, done: int) -> _Found:
        if not self._has_capacity(ask, device):
            return _Found.NO
        undo = self._take(ask, device)
        if undo is None:
            return _Found.NO
        found = self._ask(ask, done + 1, device + 1)
        if found is not _Found.YES:
            self._take_back(undo)
        return found

    def _effort(self, ask: DeviceAsk, device: int) -> int:
        """Return how many steps it is to try a device, by what has to be compared for it."""
        traits = self._space.kinds[device].traits
        parts = len(self._constraints[ask.claim]) + len(traits.counters)
        if traits.shareable:
            parts += len(traits.capacity) + len(self._shares)
        return 1 + self._beside + -(-parts // _PARTS_A_STEP)

    def _equal(self, device: int) -> int:
        """Return devices that lead to what one leads to; of shared ones only those of which nothing is consumed."""
        if device in self._space.consumed or device in self._shares:
            return 1 << device
        bits = self._space.equal(device) & ~self._space.shared
        for other in self._shares:
            bits &= ~(1 << other)
        return bits

    def _blocked(self, ask: DeviceAsk) -> int:
        """Return the devices that are in use for an ask: with admin access only what its own claim takes is."""
        return self._taking[ask.claim] if ask.is_admin else self._space.used | self._taken

    # One device

    def _take(self, ask: DeviceAsk, device: int) -> _Undo | None:
        """Take a device, None where it cannot be taken.

        The device is able; whether it is in use and its taints are asked again for those of which all are wanted.
        """
        if self._blocked(ask) >> device & 1:
            return None
        traits = self._space.kinds[device].traits
        has_share = traits.shareable and (device in self._space.consumed or device in self._shares)
        counts = bool(traits.counter_sets) and not has_share
        if counts and not self._count(device):
            return None
        if not self._is_fit(ask, device) or not self._constrain(ask, device):
            if counts:
                self._count_back(device)
            return None
        share = self._shares.get(device)
        undo = _Undo(ask, device, counts, share, device in self._shares)
        if not traits.shareable:
            self._taking[ask.claim] |= 1 << device
            self._taken |= 1 << device
        elif not self._share(ask, device):
            self._unconstrain(ask, len(self._constraints[ask.claim]))
            if counts:
                self._count_back(device)
            return None
        self._devices[ask.claim].append((ask, device))
        return undo

    def _take_back(self, undo: _Undo) -> None:
        ask, device = undo.ask, undo.device
        self._devices[ask.claim].pop()
        if undo.has_share:
            self._shares[device] = undo.share or _NO_AMOUNTS
        else:
            self._shares.pop(device, None)
        self._taking[ask.claim] &= ~(1 << device)
        self._taken &= ~(1 << device)
        if self._plans.asks_for_admin:  # another claim may have it, too
            for bits in self._taking:
                self._taken |= bits
        self._unconstrain(ask, len(self._constraints[ask.claim]))
        if undo.is_counted:
            self._count_back(device)

    def _is_fit(self, ask: DeviceAsk, device: int) -> bool:
        return bool(self._space.fit[ask.requirement] >> device & 1)

    # Capacities

    def _has_capacity(self, ask: DeviceAsk, device: int) -> bool:
        """Whether what others consume leaves enough; that it is enough where nobody does is known."""
        consumed, shared = self._space.consumed.get(device), self._shares.get(device)
        if consumed is None and shared is None:
            return True
        takes = self._consumption(ask, device)
        return takes is not None and takes.fits(consumed, shared)

    def _consumption(self, ask: DeviceAsk, device: int) -> Consumption | None:
        return self._known[ask.requirement][self._space.kinds[device].number].consumption

    def _share(self, ask: DeviceAsk, device: int) -> bool:
        """Take a share of a device."""
        if not self._has_capacity(ask, device):
            return False
        takes = self._consumption(ask, device)
        amounts = dict(self._shares.get(device, _NO_AMOUNTS))
        for name, amount in (takes.amounts if takes is not None else {}).items():
            amounts[name] = amounts.get(name, 0) + amount.number
        self._shares[device] = amounts
        return True

    # Counters

    def _count(self, device: int) -> bool:
        """Charge a device's counters to its pool, unless some counter of the pool does not suffice.

        Where all suffice before, they do so after it if those that the device takes of do.
        """
        pool, available = self._space.pool_of(device), self._space.view_of(device).available
        counted = self._counted.setdefault(pool, {})
        taken = self._space.kinds[device].traits.counters
        for name, each, amount in taken:
            counted[name, each] = counted.get((name, each), 0) + amount
        if pool not in self._lacking:
            self._steps.take(len(available) // _PARTS_A_STEP)
            self._lacking[pool] = any(amount < 0 for amount in available.values())
        if self._lacking[pool]:
            self._steps.take(len(available) // _PARTS_A_STEP)
            suffices = all(amount >= counted.get(name, 0) for name, amount in available.items())
        else:
            suffices = all(
                counted[one] <= available.get(one, counted[one]) for one in ((name, each) for name, each, _ in taken)
            )
        if suffices:
            return True
        self._count_back(device)
        return False

    def _count_back(self, device: int) -> None:
        counted = self._counted[self._space.pool_of(device)]
        for name, each, amount in self._space.kinds[device].traits.counters:
            counted[name, each] -= amount

    # Constraints

    def _constrain(self, ask: DeviceAsk, device: int) -> bool:
        """Add a device to all constraints of the claim.

        Raises:
            _FailedError: one is broken, and all devices are wanted.
        """
        for added, (constraint, name) in enumerate(self._constraints[ask.claim]):
            if constraint.add(ask, self._value(device, name)):
                continue
            self._unconstrain(ask, added)
            if ask.is_all:
                raise _FailedError(self._broken_constraint(ask, device))
            return False
        return True

    def _unconstrain(self, ask: DeviceAsk, added: int) -> None:
        for constraint, _ in reversed(self._constraints[ask.claim][:added]):
            constraint.remove(ask)

    def _value(self, device: int, name: str) -> AttributeValue | None:
        kind = self._space.kinds[device]
        return value_of(kind.attributes, kind.traits.driver, name)

    def _broken_constraint(self, ask: DeviceAsk, device: int) -> AllocationFailure:
        text = f", request {ask.own_name}: cannot add device "
        failure = AllocationFailure.of_claim(text, ask.claim)
        space = self._space
        rest = " because a claim constraint would not be satisfied"
        return failure.about(space.pool_of(device), rest, space.place_in_pool(device))
