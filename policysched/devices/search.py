"""The search for devices: claim by claim, request by request, device by device; the first full solution is taken.

It is kube-scheduler's, which tries combinations in the order of the devices and takes back what does not lead on. Two
things are left out that cannot change what is found, where nothing but the devices taken so far decides (`is_regular`)
and no selector fails: a request of which fewer devices are left than it needs fails at once, and after a device that
does not lead to a solution those equal to it are not tried. And where nothing can fail, one that can never be met ends
the search, whatever is taken for others.

Source: k8s.io/dynamic-resource-allocation v0.36.4 structured/internal/incubating/allocator_incubating.go (Allocate,
allocateOne, allocateDevice).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.columns import AttributeValue
from policysched.devices.inventory.pools import CounterName
from policysched.devices.outcomes import AllocationAnswer, Outcome, TakenDevice
from policysched.devices.requests.capacities import Consumption
from policysched.devices.requests.constraints import AttributeConstraint, fresh, value_of
from policysched.devices.requests.failures import AllocationFailure
from policysched.devices.requests.plans import MOST_RESULTS, DeviceAsk, Plans
from policysched.devices.requests.requirements import DeviceKind, Suitability
from policysched.devices.search_space import SearchSpace, bit_set
from policysched.devices.steps import OutOfStepsError, Steps

_NO_AMOUNTS: Final[Mapping[str, Number]] = {}
_DEVICES_A_STEP: Final = 16_384
"""How many devices of a node make the sets of a search take another step for each device that is tried."""
_POOLS_A_STEP: Final = 4
"""How many pools are looked into in a step for devices that are equal to one."""
_CONSTRAINTS_A_STEP: Final = 2
"""How many constraints are looked at in a step."""
_STEPS_A_COUNTER: Final = 1
_COUNTERS_A_STEP: Final = 2
"""How many counters that a device does not take are compared in a step."""
_CAPACITIES_A_STEP: Final = 4


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


class _Level:
    """A device of an ask that is looked for, on top of what is taken so far.

    Attributes:
        done: How many devices of the ask are taken.
        waiting: The devices that may still be tried; 0 where only `only` may.
        only: The one device that there is to try, -1 where there are others.
        undo: What takes back the device that is taken, None while none is.
    """

    __slots__ = ("ask", "done", "only", "undo", "waiting")

    def __init__(self, ask: DeviceAsk, done: int, waiting: int, only: int = -1) -> None:
        self.ask, self.done, self.waiting, self.only = ask, done, waiting, only
        self.undo: _Undo | None = None


class _Trial(NamedTuple):
    """What it is to try a device of a kind for a claim.

    Attributes:
        effort: What has to be compared for it. Units: steps.
        values: The claim's constraints, each with the device's value of its attribute.
    """

    effort: int
    values: Sequence[tuple[AttributeConstraint, AttributeValue | None]]


class _Choice:
    """A request with alternatives, of which one is tried."""

    __slots__ = ("all_are_too_many", "asks", "claim", "number", "place")

    def __init__(self, claim: int, place: int, asks: Sequence[DeviceAsk]) -> None:
        self.claim, self.place, self.asks = claim, place, asks
        self.number = 0
        self.all_are_too_many = True


class _ClaimEnd:
    """The claims before it have all that they ask for."""

    __slots__ = ()


_CLAIM_END: Final = _ClaimEnd()


class DeviceSearch:
    """One search on one node, which can be stopped and go on.

    Args:
        plans: the claims.
        space: the node's devices.
        known: for each requirement what is known of kinds of devices.
    """

    def __init__(self, plans: Plans, space: SearchSpace, known: Sequence[Mapping[int, Suitability]]) -> None:
        self._plans = plans
        self._space = space
        self._known = known
        self._steps = Steps(0)
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
        self._beside = len(space.kinds) // _DEVICES_A_STEP
        """How many steps a device takes because there are so many others."""
        self._lacking: dict[int, bool] = {}
        """Of each pool whose counters were asked about, whether devices in use take more of some than there is."""
        self._stack: list[_Level | _Choice | _ClaimEnd] = []
        """What is decided so far, the last on top; between two runs a level is there that looks for its next device."""
        self._trials: list[dict[int, _Trial]] = [{} for _ in plans.claims]
        self._unusable: dict[int, int] = {}
        """Of asks, by their identity, the devices without the attribute of the first constraint, once one was tried."""
        self._ends_without_error = not any(space.failing) and not plans.asks_for_all and not plans.has_alternatives
        """Whether nothing but a solution ends the search early, so that an ask that can never be met may do so."""
        self._has_begun = False

    def is_in(self, space: SearchSpace) -> bool:
        """Whether it looks into a space."""
        return self._space is space

    def run(self, steps: Steps) -> Outcome:
        """Search, from where the last run ended.

        Raises:
            OutOfStepsError: it takes more steps; another run goes on.
        """
        self._steps = steps
        try:
            found = self._go_on()
        except _FailedError as failed:
            return Outcome(AllocationAnswer.ERROR, failed.failure)
        if found is _Found.YES:
            devices = [list(map(self._result, each)) for each in self._devices]
            for one in self._stack:
                if isinstance(one, _Choice):
                    self._chosen[one.claim][one.place] = one.number
            return Outcome(AllocationAnswer.YES, None, devices, self._chosen)
        if found is _Found.TOO_MANY:
            return Outcome(AllocationAnswer.ERROR, AllocationFailure("allocation max size exceeded"))
        return Outcome(AllocationAnswer.INVALID_POOLS if self._space.has_invalid_pools else AllocationAnswer.NO)

    def _go_on(self) -> _Found:
        steps, stack, found = self._steps, self._stack, None
        if not self._has_begun:
            self._check()
            self._has_begun = True
            found = self._request(0, 0)
        while found is None or (stack and found is not _Found.YES):
            if found is not None:
                found = self._go_back(stack[-1], found)
            elif steps.left < 0:
                self._forget_trials()
                raise OutOfStepsError
            else:
                found = self._next_device(stack[-1])
        return found

    def _result(self, taken: tuple[DeviceAsk, int]) -> TakenDevice:
        ask, device = taken
        space, kind = self._space, self._space.kinds[device]
        consumption = self._known[ask.requirement][kind.number].consumption if kind.traits.shareable else None
        return TakenDevice(ask, space.pool_of(device), space.place_in_pool(device), consumption)

    # Requests for all devices

    def _check(self) -> None:
        """Look for what is wrong with the requests, on this node or on any.

        Raises:
            OutOfStepsError: all devices of so many requests are too many to list at once; some more are now.
            _FailedError: something is.
        """
        failure = self._plans.check(self._size) if self._plans.asks_for_all else self._plans.failure
        if failure is not None:
            raise _FailedError(failure)

    def _size(self, ask: DeviceAsk) -> int | AllocationFailure:
        """Return how many devices an ask takes, or why that cannot be said."""
        if not ask.is_all:
            return ask.count
        found = self._all.get(id(ask))
        if found is None:
            if self._steps.left < 0:
                raise OutOfStepsError
            listed = self._list_all(ask)
            if isinstance(listed, AllocationFailure):
                return listed
            found = self._all[id(ask)] = listed
        return len(found)

    def _list_all(self, ask: DeviceAsk) -> list[int] | AllocationFailure:
        """List every device that an ask for all is about, in use or not."""
        space, found = self._space, []
        for place, (at, view) in enumerate(space.pools):
            if not view.is_usable:
                state = "being updated" if view.is_incomplete else "invalid"
                text = f", request {ask.own_name}: asks for all devices, but resource pool "
                return AllocationFailure.of_claim(text, ask.claim).about(place, f" is currently {state}")
            self._steps.left -= 1 + len(view.devices)
            for device in range(at, at + len(view.devices)):
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

    # The search: what returns None has put a level on top of the stack that looks for a device

    def _request(self, claim: int, place: int) -> _Found | None:
        """Begin with a request of a claim, or with what comes after the last one."""
        claims = self._plans.claims
        self._steps.left -= 1
        while claim < len(claims) and place >= len(claims[claim].requests):
            self._steps.left -= 1
            self._stack.append(_CLAIM_END)
            claim, place = claim + 1, 0
        if claim >= len(claims):
            return _Found.YES
        request = claims[claim].requests[place]
        if request.has_alternatives:
            self._stack.append(_Choice(claim, place, request.asks))
        return self._ask(request.asks[0], 0, 0)

    def _ask(self, ask: DeviceAsk, done: int, start: int) -> _Found | None:
        """Begin with the devices of an ask that are still missing, or with what comes after them.

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
        self._stack.append(self._some(ask, done, start) if listed is None else _Level(ask, done, 0, listed[done]))
        return None

    def _some(self, ask: DeviceAsk, done: int, start: int) -> _Level:
        """Return the level that looks for a device from a place on."""
        space = self._space
        waiting = self._usable(ask) | space.failing[ask.requirement]
        return _Level(ask, done, waiting >> start << start)

    def _usable(self, ask: DeviceAsk) -> int:
        """Return the devices that an ask may get, as far as that does not depend on what else is taken."""
        space, requirement = self._space, ask.requirement
        return space.fit[requirement] & ~space.lacking[requirement] & ~self._unusable.get(id(ask), 0)

    def _next_device(self, level: _Level | _Choice | _ClaimEnd) -> _Found | None:
        """Try the next device of a level."""
        assert isinstance(level, _Level), "only a level looks for devices"  # noqa: S101
        ask = level.ask
        device = level.only if level.only >= 0 else self._first_free(level)
        if device < 0:
            self._stack.pop()
            if self._ends_without_error and self._can_never_be_met(ask):
                self._stack.clear()
            return _Found.NO
        trial = self._trial(ask.claim, self._space.kinds[device])
        self._steps.left -= trial.effort
        if level.only < 0:
            if self._space.failing[ask.requirement] >> device & 1:
                raise _FailedError(self._failure(ask, device))
            if not self._has_capacity(ask, device):
                self._leave_out(level, device)
                return None
        level.undo = self._take(ask, device, trial)
        if level.undo is not None:
            return self._ask(ask, level.done + 1, device + 1)
        if level.only < 0:
            self._leave_out(level, device)
            return None
        self._stack.pop()
        return _Found.NO

    def _first_free(self, level: _Level) -> int:
        """Return the first device that a level may try, -1 where there is none or there are too few."""
        ask = level.ask
        free = level.waiting & ~self._blocked(ask)
        if not free or (self._is_regular and free.bit_count() < ask.count - level.done):
            return -1
        return (free & -free).bit_length() - 1

    def _can_never_be_met(self, ask: DeviceAsk) -> bool:
        """Whether there are too few devices, whatever else is taken."""
        return self._usable(ask).bit_count() < ask.count

    def _leave_out(self, level: _Level, device: int) -> None:
        """Have a level try no device up to one that led nowhere, nor those that are like it."""
        level.waiting = level.waiting >> (device + 1) << (device + 1)
        if self._is_regular and level.waiting:
            level.waiting &= ~self._equal(device)

    def _go_back(self, top: _Level | _Choice | _ClaimEnd, found: _Found) -> _Found | None:
        """Try something else, where what was tried on top of the stack led nowhere."""
        if isinstance(top, _Level):
            undo = top.undo
            assert undo is not None, "only what comes after a device leads nowhere"  # noqa: S101
            top.undo = None
            self._take_back(undo)
            if found is _Found.NO and top.only < 0:
                self._leave_out(top, undo.device)
                return None
        elif isinstance(top, _Choice):
            top.all_are_too_many = top.all_are_too_many and found is _Found.TOO_MANY
            top.number += 1
            if top.number < len(top.asks):
                self._steps.left -= 1
                return self._ask(top.asks[top.number], 0, 0)
            found = _Found.TOO_MANY if top.all_are_too_many else _Found.NO
        elif found is _Found.TOO_MANY:
            # another choice for the claim before may leave more of what the next one can do with fewer devices
            found = _Found.NO
        self._stack.pop()
        return found

    def _trial(self, claim: int, kind: DeviceKind) -> _Trial:
        """Return what it is to try a device of a kind for a claim."""
        known = self._trials[claim].get(kind.number)
        if known is not None:
            return known
        traits = kind.traits
        constraints = self._constraints[claim]
        effort = (
            1 + self._beside + -(-len(constraints) // _CONSTRAINTS_A_STEP) + _STEPS_A_COUNTER * len(traits.counters)
        )
        if traits.shareable:
            effort += -(-len(traits.capacity) // _CAPACITIES_A_STEP)
        values = [(one, value_of(kind.attributes, traits.driver, name)) for one, name in constraints]
        made = self._trials[claim][kind.number] = _Trial(effort, values)
        return made

    def _forget_trials(self) -> None:
        for one in self._trials:
            one.clear()

    def _equal(self, device: int) -> int:
        """Return devices that lead to what one leads to; of shared ones only those of which nothing is consumed."""
        if device in self._space.consumed or device in self._shares:
            return 1 << device
        self._steps.left -= len(self._space.pools) // _POOLS_A_STEP + len(self._shares)
        bits = self._space.equal(device) & ~self._space.shared
        for other in self._shares:
            bits &= ~(1 << other)
        return bits

    def _blocked(self, ask: DeviceAsk) -> int:
        """Return the devices that are in use for an ask: with admin access only what its own claim takes is."""
        return self._taking[ask.claim] if ask.is_admin else self._space.used | self._taken

    # One device

    def _take(self, ask: DeviceAsk, device: int, trial: _Trial) -> _Undo | None:
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
        if not self._is_fit(ask, device) or not self._constrain(ask, device, trial):
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
            self._steps.left -= len(available) // _COUNTERS_A_STEP
            self._lacking[pool] = any(amount < 0 for amount in available.values())
        if self._lacking[pool]:
            self._steps.left -= len(available) // _COUNTERS_A_STEP
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

    def _constrain(self, ask: DeviceAsk, device: int, trial: _Trial) -> bool:
        """Add a device to all constraints of the claim.

        Raises:
            _FailedError: one is broken, and all devices are wanted.
        """
        for added, (constraint, value) in enumerate(trial.values):
            if constraint.add(ask, value):
                continue
            self._unconstrain(ask, added)
            if ask.is_all:
                raise _FailedError(self._broken_constraint(ask, device))
            if value is None and not added:  # after another one a trial changes what that one remembers
                self._unusable[id(ask)] = self._without_first_attribute(ask)
            return False
        return True

    def _without_first_attribute(self, ask: DeviceAsk) -> int:
        kinds, name = self._space.kinds, self._constraints[ask.claim][0][1]
        self._steps.left -= len(kinds)
        return bit_set(value_of(one.attributes, one.traits.driver, name) is None for one in kinds)

    def _unconstrain(self, ask: DeviceAsk, added: int) -> None:
        for constraint, _ in reversed(self._constraints[ask.claim][:added]):
            constraint.remove(ask)

    def _broken_constraint(self, ask: DeviceAsk, device: int) -> AllocationFailure:
        text = f", request {ask.own_name}: cannot add device "
        failure = AllocationFailure.of_claim(text, ask.claim)
        space = self._space
        rest = " because a claim constraint would not be satisfied"
        return failure.about(space.pool_of(device), rest, space.place_in_pool(device))
