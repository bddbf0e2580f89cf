"""`PartialSolution`: the devices that a search has chosen so far for claims on a node.

Whether another device can be taken depends on the devices taken so far: their capacities, the counters of their pools,
and the constraints of the claim.

Source: k8s.io/dynamic-resource-allocation v0.36.5 structured/internal/incubating/allocator_incubating.go
(allocateDevice).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from policysched.budget import Budget
from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.columns import AttributeValue
from policysched.devices.inventory.slices import CounterName
from policysched.devices.outcomes import TakenDevice
from policysched.devices.requests.capacities import Consumption
from policysched.devices.requests.constraints import AttributeConstraint, fresh, value_of
from policysched.devices.requests.failures import AllocationFailure
from policysched.devices.requests.plans import DeviceAsk, Plans
from policysched.devices.requests.requirements import DeviceKind, Suitability
from policysched.devices.search_space import SearchSpace
from policysched.devices.view_shapes import bit_set

_NO_AMOUNTS: Final[Mapping[str, Number]] = {}
_DEVICES_A_STEP: Final = 16_384
"""Number of devices of a node for which trying a device costs one more step, because bit sets are longer."""
_POOLS_A_STEP: Final = 4
_CONSTRAINTS_A_STEP: Final = 2
_STEPS_A_COUNTER: Final = 1
_CAPACITIES_A_STEP: Final = 4


class FailedSearchError(Exception):
    """Raised if an error, such as a failed selector, ends the device search."""

    def __init__(self, failure: AllocationFailure) -> None:
        super().__init__(failure)
        self.failure = failure


class DeviceUndo(NamedTuple):
    """The data with which the choice of a device is undone."""

    ask: DeviceAsk
    device: int
    is_counted: bool
    share: Mapping[str, Number] | None
    has_share: bool


class DeviceTrial(NamedTuple):
    """The cost of trying a device of some kind for a claim, and the attribute values that constraints compare.

    Attributes:
        effort: The cost of the comparisons. Units: steps.
        values: The claim's constraints, each with the device's value of its attribute.
    """

    effort: int
    values: Sequence[tuple[AttributeConstraint, AttributeValue | None]]


class PartialSolution:
    """The devices that a search has chosen so far, with the counters, capacities and constraints that they affect.

    Args:
        plans: The compiled claims.
        space: The node's devices.
        known: For each requirement, the suitability of each kind of device by its number.

    Attributes:
        steps: The budget of the search.
        devices: The devices of each claim, in the order in which they were taken.
    """

    def __init__(self, plans: Plans, space: SearchSpace, known: Sequence[Mapping[int, Suitability]]) -> None:
        self.steps = Budget(0)
        self._plans = plans
        self._space = space
        self._known = known
        self._constraints: list[list[tuple[AttributeConstraint, str]]] = [
            [(fresh(one, compares_all=plans.release.distinct_compares_all), name) for one, name in claim.constraints]
            for claim in plans.claims
        ]
        self.devices: list[list[tuple[DeviceAsk, int]]] = [[] for _ in plans.claims]
        self._taking = [0] * len(plans.claims)
        """The devices that each claim has chosen and that are not shared, as bit sets."""
        self._taken = 0
        self._shares: dict[int, Mapping[str, Number]] = {}
        self._counted: dict[int, dict[CounterName, Number]] = {}
        self._trials: list[dict[int, DeviceTrial]] = [{} for _ in plans.claims]
        self._unusable: dict[int, int] = {}
        """For each request, by identity, the devices (bit set) without the attribute of its first constraint."""
        self._beside = len(space.kinds) // _DEVICES_A_STEP
        """Additional steps for trying a device on a node with many devices."""

    def results(self) -> list[list[TakenDevice]]:
        """Return the chosen devices of each claim, in the order in which they were chosen."""
        return [list(map(self._result, each)) for each in self.devices]

    def _result(self, taken: tuple[DeviceAsk, int]) -> TakenDevice:
        ask, device = taken
        space, kind = self._space, self._space.kinds[device]
        consumption = self._known[ask.requirement][kind.number].consumption if kind.traits.shareable else None
        return TakenDevice(ask, space.pool_of(device), space.place_in_pool(device), consumption)

    def trial(self, claim: int, kind: DeviceKind) -> DeviceTrial:
        """Return the cost of trying a device of some kind for a claim, and the attribute values to compare."""
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
        made = self._trials[claim][kind.number] = DeviceTrial(effort, values)
        return made

    def forget_trials(self) -> None:
        """Drop the cached `DeviceTrial`s at the end of a run of the search, because the next run may be much later."""
        for one in self._trials:
            one.clear()

    def usable(self, ask: DeviceAsk) -> int:
        """Return the devices that meet the requirement of a request, free or not, as a bit set."""
        space, requirement = self._space, ask.requirement
        return space.fit[requirement] & ~space.lacking[requirement] & ~self._unusable.get(id(ask), 0)

    def equal(self, device: int) -> int:
        """Return the devices with which a search can replace `device`, as a bit set; shareable devices are left out."""
        if device in self._space.consumed or device in self._shares:
            return 1 << device
        self.steps.left -= len(self._space.pools) // _POOLS_A_STEP + len(self._shares)
        bits = self._space.equal(device) & ~self._space.shared
        for other in self._shares:
            bits &= ~(1 << other)
        return bits

    def blocked(self, ask: DeviceAsk) -> int:
        """Return the devices in use that a request cannot get; admin access can get devices in use by other claims."""
        return self._taking[ask.claim] if ask.is_admin else self._space.used | self._taken

    # One device

    def take(self, ask: DeviceAsk, device: int, trial: DeviceTrial) -> DeviceUndo | None:
        """Choose a device for a request; return None if a constraint, counter or capacity forbids the device.

        The device must be able. Use and taints are checked again, for requests for all devices.
        """
        if self.blocked(ask) >> device & 1:
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
        undo = DeviceUndo(ask, device, counts, share, device in self._shares)
        if not traits.shareable:
            self._taking[ask.claim] |= 1 << device
            self._taken |= 1 << device
        elif not self._share(ask, device):
            self._unconstrain(ask, len(self._constraints[ask.claim]))
            if counts:
                self._count_back(device)
            return None
        self.devices[ask.claim].append((ask, device))
        return undo

    def take_back(self, undo: DeviceUndo) -> None:
        """Undo the last choice of a device."""
        ask, device = undo.ask, undo.device
        self.devices[ask.claim].pop()
        if undo.has_share:
            self._shares[device] = undo.share or _NO_AMOUNTS
        else:
            self._shares.pop(device, None)
        self._taking[ask.claim] &= ~(1 << device)
        self._taken &= ~(1 << device)
        if self._plans.asks_for_admin:  # another claim may have taken it too
            for bits in self._taking:
                self._taken |= bits
        self._unconstrain(ask, len(self._constraints[ask.claim]))
        if undo.is_counted:
            self._count_back(device)

    def _is_fit(self, ask: DeviceAsk, device: int) -> bool:
        return bool(self._space.fit[ask.requirement] >> device & 1)

    # Capacities

    def has_capacity(self, ask: DeviceAsk, device: int) -> bool:
        """Return whether a shareable device has enough unconsumed capacity for a request."""
        consumed, shared = self._space.consumed.get(device), self._shares.get(device)
        if consumed is None and shared is None:
            return True
        takes = self._consumption(ask, device)
        return takes is not None and takes.fits(consumed, shared)

    def _consumption(self, ask: DeviceAsk, device: int) -> Consumption | None:
        return self._known[ask.requirement][self._space.kinds[device].number].consumption

    def _share(self, ask: DeviceAsk, device: int) -> bool:
        """Consume a device's capacity for a share; return False if the capacity is insufficient."""
        if not self.has_capacity(ask, device):
            return False
        takes = self._consumption(ask, device)
        amounts = dict(self._shares.get(device, _NO_AMOUNTS))
        for name, amount in (takes.amounts if takes is not None else {}).items():
            amounts[name] = amounts.get(name, 0) + amount.number
        self._shares[device] = amounts
        return True

    # Counters

    def _count(self, device: int) -> bool:
        """Consume a device's counters in its pool; return False if the available amounts are insufficient."""
        pool = self._space.pool_of(device)
        if pool in self._space.overdrawn:
            return False
        available, counted = self._space.available[pool], self._counted.setdefault(pool, {})
        taken = self._space.kinds[device].traits.counters
        for name, each, amount in taken:
            counted[name, each] = counted.get((name, each), 0) + amount
        if all(counted[one] <= available.get(one, counted[one]) for one in ((name, each) for name, each, _ in taken)):
            return True
        self._count_back(device)
        return False

    def _count_back(self, device: int) -> None:
        counted = self._counted[self._space.pool_of(device)]
        for name, each, amount in self._space.kinds[device].traits.counters:
            counted[name, each] -= amount

    # Constraints

    def _constrain(self, ask: DeviceAsk, device: int, trial: DeviceTrial) -> bool:
        """Add a device to the constraints of the claim; return False if the device violates a constraint.

        Raises:
            FailedSearchError: A constraint is violated, and the request is for all devices.
        """
        for added, (constraint, value) in enumerate(trial.values):
            if constraint.add(ask, value):
                continue
            self._unconstrain(ask, added)
            if ask.is_all:
                raise FailedSearchError(self._broken_constraint(ask, device))
            if value is None and not added:  # a trial changes the state of earlier constraints
                self._unusable[id(ask)] = self._without_first_attribute(ask)
            return False
        return True

    def _without_first_attribute(self, ask: DeviceAsk) -> int:
        kinds, name = self._space.kinds, self._constraints[ask.claim][0][1]
        self.steps.left -= len(kinds)
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
