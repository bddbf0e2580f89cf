"""What a request requires of a single device: selectors, tolerations and capacities.

Source: k8s.io/dynamic-resource-allocation v0.36 structured/internal/incubating/allocator_incubating.go (isSelectable,
selectorsMatch, taintPreventsAllocation), resourceclaim/devicetoleration.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from policysched.devices.inventory.columns import DeviceTraits
from policysched.devices.requests.capacities import Consumption, consumption
from policysched.devices.requests.failures import AllocationFailure
from policysched.model.objects import (
    CapacityRequirements,
    DeviceAttribute,
    DeviceClass,
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
)

if TYPE_CHECKING:
    from policysched.cel import CompiledSelector, Variables


@dataclass(eq=False, slots=True)
class DeviceKind:
    """Devices that are alike in all that some claims read; equal ones are one object."""

    traits: DeviceTraits
    attributes: dict[str, DeviceAttribute]
    """Those that the claims read."""
    number: int
    _variables: Variables | None = None

    @property
    def variables(self) -> Variables:
        """The device as selectors read it."""
        if self._variables is None:
            from policysched.cel import Device as SelectorDevice  # noqa: PLC0415 - a start needs no selectors
            from policysched.cel import Variables  # noqa: PLC0415 - as above

            traits = self.traits
            self._variables = Variables(
                SelectorDevice(
                    traits.driver,
                    {name: msgspec.to_builtins(one) for name, one in self.attributes.items()},
                    {name: str(one.value) for name, one in traits.capacity.items()},
                    traits.shareable,
                )
            )
        return self._variables


class Suitability(NamedTuple):
    """Whether a kind of device is what a request requires.

    Attributes:
        failure: The error of a selector.
        is_able: Whether it is selected and has the capacities, as far as nobody else consumes them.
        is_tolerated: Whether all taints that count are tolerated.
        consumption: What the request takes of its capacities, None where it cannot serve the request at all.
    """

    failure: AllocationFailure | None
    is_able: bool
    is_tolerated: bool
    consumption: Consumption | None


_UNSUITABLE: Final = Suitability(None, False, False, None)
_STEPS_A_KIND: Final = 8
"""What making the values of a kind of device takes."""
_WORK_A_STEP: Final = 10
"""How much of the work that selectors count takes as long as a step."""


class DeviceRequirement:
    """What a request requires of each device."""

    __slots__ = ("_capacity", "_selectors", "_tolerations")

    def __init__(
        self,
        device_class: DeviceClass,
        selectors: Sequence[DeviceSelector],
        tolerations: Sequence[DeviceToleration],
        capacity: CapacityRequirements | None,
    ) -> None:
        of_class = f"class {device_class.metadata.name}: "
        self._selectors = [_Selector(of_class, place, one) for place, one in enumerate(device_class.spec.selectors)]
        self._selectors += [_Selector(None, place, one) for place, one in enumerate(selectors)]
        self._tolerations = tuple(tolerations)
        self._capacity = capacity

    def reads(self) -> frozenset[str] | None:
        """Return the names of attributes that selectors can read, with and without domain, None for all."""
        names: set[str] = set()
        for one in self._selectors:
            if not isinstance(one.compiled, str):
                if one.compiled.reads is None:
                    return None
                names.update(f"{domain}/{name}" for domain, name in one.compiled.reads)
                names.update(name for _, name in one.compiled.reads)
        return frozenset(names)

    def suitability(self, kind: DeviceKind) -> tuple[Suitability, int]:
        """Ask the selectors one after the other, then compare capacities and taints.

        Returns:
            The answer, and what it took. Units: steps.
        """
        from policysched.cel.values.work import LIMIT, WORK  # noqa: PLC0415 - a start needs no selectors

        effort = _STEPS_A_KIND
        for one in self._selectors:
            matches = one.matches(kind)
            effort += 1 + (LIMIT - WORK.left) // _WORK_A_STEP
            if isinstance(matches, AllocationFailure):
                return Suitability(matches, False, False, None), effort
            if not matches:
                return _UNSUITABLE, effort
        traits = kind.traits
        takes = consumption(self._capacity, traits.capacity)
        is_tolerated = all(any(tolerates(each, taint) for each in self._tolerations) for taint in traits.taints)
        return Suitability(None, takes is not None and takes.fits(), is_tolerated, takes), effort

    def refusal(self, kind: DeviceKind) -> str:
        """Say which selector keeps a kind of device out, or that it lacks a capacity; empty where neither does."""
        for one in self._selectors:
            matches = one.matches(kind)
            if isinstance(matches, AllocationFailure):
                return f"{matches.text.removeprefix(': ')}{matches.rest}"
            if not matches:
                return f"{one.name} is false"
        takes = consumption(self._capacity, kind.traits.capacity)
        return "" if takes is not None and takes.fits() else "its capacity is not what is asked for"


class _Selector:
    __slots__ = ("_from_class", "_place", "compiled")

    def __init__(self, from_class: str | None, place: int, selector: DeviceSelector) -> None:
        self._from_class = from_class
        self._place = place
        self.compiled = _compiled(selector.cel.expression if selector.cel is not None else "")

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"{self._from_class or ''}selector #{self._place}"

    def matches(self, kind: DeviceKind) -> bool | AllocationFailure:
        if isinstance(self.compiled, str):
            return self._failure(f"CEL compile error: {self.compiled}")
        matches = kind.traits.trouble or self.compiled.matches(kind.variables)
        return self._failure(f"CEL runtime error: {matches}") if isinstance(matches, str) else matches

    def _failure(self, reason: str) -> AllocationFailure:
        text = f"selector #{self._place}: {reason}"
        return (
            AllocationFailure.of_claim(": " + text)
            if self._from_class is None
            else AllocationFailure(self._from_class + text)
        )


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> CompiledSelector | str:
    from policysched.cel import InvalidDeviceSelectorError, compile_selector  # noqa: PLC0415 - as above

    try:
        return compile_selector(expression)
    except InvalidDeviceSelectorError as error:
        return str(error)


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether a toleration covers a taint; an empty effect or key covers every one."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
