"""The search for devices: claim by claim, request by request, device by device; the first full solution is taken.

It is kube-scheduler's, which tries combinations in the order of the devices and takes back what does not lead on. Two
things are left out that cannot change what is found, where nothing but the devices taken so far decides (`is_regular`)
and no selector fails: a request of which fewer devices are left than it needs fails at once, and after a device that
does not lead to a solution those equal to it are not tried. And where nothing can fail, one that can never be met ends
the search, whatever is taken for others.

Source: k8s.io/dynamic-resource-allocation v0.36.4 structured/internal/incubating/allocator_incubating.go (Allocate,
allocateOne).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from policysched.budget import Budget, BudgetExceededError
from policysched.devices.outcomes import AllocationAnswer, Outcome
from policysched.devices.partial_solution import DeviceUndo, FailedSearchError, PartialSolution
from policysched.devices.requests.failures import AllocationFailure
from policysched.devices.requests.plans import MOST_RESULTS, DeviceAsk, Plans
from policysched.devices.requests.requirements import Suitability
from policysched.devices.search_space import SearchSpace


class _Found(Enum):
    YES = 1
    NO = 2
    TOO_MANY = 3
    """The claim would have more devices than it can."""


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
        self.undo: DeviceUndo | None = None


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
        self._steps = Budget(0)
        self._solution = PartialSolution(plans, space, known)
        self._chosen: list[dict[int, int]] = [{} for _ in plans.claims]
        self._all: dict[int, list[int]] = {}
        self._is_regular = plans.is_regular and not any(space.failing)
        self._stack: list[_Level | _Choice | _ClaimEnd] = []
        """What is decided so far, the last on top; between two runs a level is there that looks for its next device."""
        self._ends_without_error = not any(space.failing) and not plans.asks_for_all and not plans.has_alternatives
        """Whether nothing but a solution ends the search early, so that an ask that can never be met may do so."""
        self._has_begun = False

    def run(self, steps: Budget) -> Outcome:
        """Search, from where the last run ended.

        Raises:
            BudgetExceededError: it takes more steps; another run goes on.
        """
        self._steps = self._solution.steps = steps
        try:
            found = self._go_on()
        except FailedSearchError as failed:
            return Outcome(AllocationAnswer.ERROR, failed.failure)
        if found is _Found.YES:
            devices = self._solution.results()
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
                self._solution.forget_trials()
                raise BudgetExceededError
            else:
                found = self._next_device(stack[-1])
        return found

    # Requests for all devices

    def _check(self) -> None:
        """Look for what is wrong with the requests, on this node or on any.

        Raises:
            BudgetExceededError: all devices of so many requests are too many to list at once; some more are now.
            FailedSearchError: something is.
        """
        failure = self._plans.check(self._size) if self._plans.asks_for_all else self._plans.failure
        if failure is not None:
            raise FailedSearchError(failure)

    def _size(self, ask: DeviceAsk) -> int | AllocationFailure:
        """Return how many devices an ask takes, or why that cannot be said."""
        if not ask.is_all:
            return ask.count
        found = self._all.get(id(ask))
        if found is None:
            if self._steps.left < 0:
                raise BudgetExceededError
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
            self._steps.left -= 1 + view.size
            for device in range(at, at + view.size):
                if space.failing[ask.requirement] >> device & 1:
                    return self._failure(ask, device)
                if self._is_able(ask, device) and self._solution.has_capacity(ask, device):
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
        if len(self._solution.devices[ask.claim]) + count - done > MOST_RESULTS:
            return _Found.TOO_MANY
        self._stack.append(self._some(ask, done, start) if listed is None else _Level(ask, done, 0, listed[done]))
        return None

    def _some(self, ask: DeviceAsk, done: int, start: int) -> _Level:
        """Return the level that looks for a device from a place on."""
        space = self._space
        waiting = self._solution.usable(ask) | space.failing[ask.requirement]
        return _Level(ask, done, waiting >> start << start)

    def _next_device(self, level: _Level | _Choice | _ClaimEnd) -> _Found | None:
        """Try the next device of a level."""
        assert isinstance(level, _Level), "only a level looks for devices"  # noqa: S101
        ask, solution = level.ask, self._solution
        device = level.only if level.only >= 0 else self._first_free(level)
        if device < 0:
            self._stack.pop()
            if self._ends_without_error and self._can_never_be_met(ask):
                self._stack.clear()
            return _Found.NO
        trial = solution.trial(ask.claim, self._space.kinds[device])
        self._steps.left -= trial.effort
        if level.only < 0:
            if self._space.failing[ask.requirement] >> device & 1:
                raise FailedSearchError(self._failure(ask, device))
            if not solution.has_capacity(ask, device):
                self._leave_out(level, device)
                return None
        level.undo = solution.take(ask, device, trial)
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
        free = level.waiting & ~self._solution.blocked(ask)
        if not free or (self._is_regular and free.bit_count() < ask.count - level.done):
            return -1
        return (free & -free).bit_length() - 1

    def _can_never_be_met(self, ask: DeviceAsk) -> bool:
        """Whether there are too few devices, whatever else is taken."""
        return self._solution.usable(ask).bit_count() < ask.count

    def _leave_out(self, level: _Level, device: int) -> None:
        """Have a level try no device up to one that led nowhere, nor those that are like it."""
        level.waiting = level.waiting >> (device + 1) << (device + 1)
        if self._is_regular and level.waiting:
            level.waiting &= ~self._solution.equal(device)

    def _go_back(self, top: _Level | _Choice | _ClaimEnd, found: _Found) -> _Found | None:
        """Try something else, where what was tried on top of the stack led nowhere."""
        if isinstance(top, _Level):
            undo = top.undo
            assert undo is not None, "only what comes after a device leads nowhere"  # noqa: S101
            top.undo = None
            self._solution.take_back(undo)
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
