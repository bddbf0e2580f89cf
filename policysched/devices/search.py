"""`DeviceSearch`: backtracking search for the devices of claims; it ends with the first solution.

The search has kube-scheduler's order and results: it tries combinations in the order of the devices and backtracks.
Three shortcuts never change the result. If equal devices are interchangeable (`is_regular`) and no selector fails, a
request with fewer remaining devices than it needs fails at once, and after a device that does not lead to a solution,
equal devices are skipped. If no error is possible, a request that can never be met ends the search.

Source: k8s.io/dynamic-resource-allocation v0.36.5 structured/internal/incubating/allocator_incubating.go (Allocate,
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
    """The failure of a claim with more devices than a claim can have."""


class _Level:
    """A level of the backtracking search: the next device of a request.

    Attributes:
        done: Number of devices of the ask that are taken.
        waiting: The devices to try; 0 if `only` is the only one.
        only: The only device to try, -1 if there are several.
        undo: Undoes the device that is taken on this level, None if none is taken.
    """

    __slots__ = ("ask", "done", "only", "undo", "waiting")

    def __init__(self, ask: DeviceAsk, done: int, waiting: int, only: int = -1) -> None:
        self.ask, self.done, self.waiting, self.only = ask, done, waiting, only
        self.undo: DeviceUndo | None = None


class _Choice:
    """A level of the backtracking search: the alternatives of a request, in order."""

    __slots__ = ("all_are_too_many", "asks", "claim", "number", "place")

    def __init__(self, claim: int, place: int, asks: Sequence[DeviceAsk]) -> None:
        self.claim, self.place, self.asks = claim, place, asks
        self.number = 0
        self.all_are_too_many = True


class _ClaimEnd:
    """A level of the backtracking search: the end of a claim whose requests all have devices."""

    __slots__ = ()


_CLAIM_END: Final = _ClaimEnd()


class DeviceSearch:
    """The search for the devices of all claims on one node; it can continue after it ran out of steps.

    Args:
        plans: The compiled claims.
        space: The node's devices.
        known: For each requirement, the suitability of each kind of device by its number.
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
        """The levels of the backtracking search; a next run continues with the next device of the topmost level."""
        self._ends_without_error = not any(space.failing) and not plans.asks_for_all and not plans.has_alternatives
        """Whether no error is possible, so that a request that can never be met ends the search."""
        self._has_begun = False

    def run(self, steps: Budget) -> Outcome:
        """Start the search, or continue it after it ran out of steps.

        Raises:
            BudgetExceededError: The budget is used up; the next run continues.
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
        """Return the first error in requests and constraints, before the search starts.

        Raises:
            BudgetExceededError: The budget is used up by requests for all devices; the next run continues.
            FailedSearchError: A request is invalid, on this node or on any node.
        """
        failure = self._plans.check(self._size) if self._plans.asks_for_all else self._plans.failure
        if failure is not None:
            raise FailedSearchError(failure)

    def _size(self, ask: DeviceAsk) -> int | AllocationFailure:
        """Return the number of devices of a request; an error if a request for all devices cannot be met."""
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
        """Return every device that a request for all devices matches, free or not."""
        space, found = self._space, []
        includes_consumed = self._plans.release.all_includes_consumed
        for place, (at, view) in enumerate(space.pools):
            if not view.is_usable:
                state = "being updated" if view.is_incomplete else "invalid"
                text = f", request {ask.own_name}: asks for all devices, but resource pool "
                failure = AllocationFailure.of_claim(text, ask.claim).about(place, f" is currently {state}")
                return failure._replace(rejects_node=self._plans.release.incomplete_pool_rejects_node)
            self._steps.left -= 1 + view.size
            for device in range(at, at + view.size):
                if space.failing[ask.requirement] >> device & 1:
                    return self._failure(ask, device)
                if self._is_able(ask, device) and (includes_consumed or self._solution.has_capacity(ask, device)):
                    found.append(device)
        return found

    def _is_able(self, ask: DeviceAsk, device: int) -> bool:
        return bool(self._space.able[ask.requirement] >> device & 1)

    def _failure(self, ask: DeviceAsk, device: int) -> AllocationFailure:
        failure = self._known[ask.requirement][self._space.kinds[device].number].failure
        assert failure is not None, "only called for devices on which a selector fails"  # noqa: S101
        failure = failure._replace(claim=ask.claim)
        if failure.names_request:
            text = f", request {ask.own_name}{failure.text}"
            failure = failure._replace(text=text, names_pool=not ask.is_all)
        if not failure.rest:
            return failure
        return failure.about(self._space.pool_of(device), failure.rest, self._space.place_in_pool(device))

    # The search: a method that returns None has added a level that tries devices

    def _request(self, claim: int, place: int) -> _Found | None:
        """Start the next request of a claim; after the last request, start the next claim."""
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
        """Start the choice of a request's next device; after its last device, start the next request.

        Args:
            ask: The ask.
            done: Number of its devices that are taken.
            start: The first device to try.
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
        """Return a search level that tries a request's devices from an index on."""
        space = self._space
        waiting = self._solution.usable(ask) | space.failing[ask.requirement]
        return _Level(ask, done, waiting >> start << start)

    def _next_device(self, level: _Level | _Choice | _ClaimEnd) -> _Found | None:
        """Choose the next device of a search level."""
        assert isinstance(level, _Level), "only a level tries devices"  # noqa: S101
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
        """Return the next free device of a search level; -1 if fewer free devices are left than the request needs."""
        ask = level.ask
        free = level.waiting & ~self._solution.blocked(ask)
        if not free or (self._is_regular and free.bit_count() < ask.count - level.done):
            return -1
        return (free & -free).bit_length() - 1

    def _can_never_be_met(self, ask: DeviceAsk) -> bool:
        """Return whether fewer devices than a request needs meet its requirement, free or not."""
        return self._solution.usable(ask).bit_count() < ask.count

    def _leave_out(self, level: _Level, device: int) -> None:
        """Skip a device that leads to no solution, with all devices before it and all equivalent devices."""
        level.waiting = level.waiting >> (device + 1) << (device + 1)
        if self._is_regular and level.waiting:
            level.waiting &= ~self._solution.equal(device)

    def _go_back(self, top: _Level | _Choice | _ClaimEnd, found: _Found) -> _Found | None:
        """Undo the choice of the topmost search level and try the next choice of that level."""
        if isinstance(top, _Level):
            undo = top.undo
            assert undo is not None, "only a level with a device can fail later"  # noqa: S101
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
            # another choice for the earlier claim may leave devices of which the next claim needs fewer
            found = _Found.NO
        self._stack.pop()
        return found
