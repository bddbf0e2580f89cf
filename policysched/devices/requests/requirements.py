"""What a request requires of a single device: selectors, tolerations and capacities.

Source: k8s.io/dynamic-resource-allocation v0.36 structured/internal/incubating/allocator_incubating.go (isSelectable,
selectorsMatch, taintPreventsAllocation), resourceclaim/devicetoleration.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from policysched.budget import Budget, BudgetExceededError
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
from policysched.visible import cut_bytes

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

    def forget_variables(self) -> None:
        """Give back what selectors read; it is made again where one asks again."""
        self._variables = None

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
_STEPS_A_KIND: Final = 16
"""What making the values of a kind of device takes."""
_STEPS_A_CAPACITY: Final = 2
"""What working out takes how much of a capacity is consumed."""
_STEPS_A_CHARACTER: Final = 4
"""What compiling takes for each character of a selector."""
_STEPS_A_SELECTOR: Final = 40_000
"""What is counted for compiling one selector at most."""
_STEPS_TO_SPARE: Final = 2_000
"""How many steps more than there are compiling may take where other things are done after it."""
_LONGEST_REASON: Final = 4096
"""How much of an error is told: selectors can make names of what they look for. Units: bytes of UTF-8."""
_WORK_A_STEP: Final = 6
"""How much of the work that selectors count takes as long as a step."""


class DeviceRequirement:
    """What a request requires of each device."""

    __slots__ = ("_begun", "_capacity", "_selectors", "_tolerations")

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
        self._begun: tuple[DeviceKind | None, int] = (None, 0)
        """The kind of which not all selectors were asked, and how many were."""

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

    def suitability(self, kind: DeviceKind, most: int) -> tuple[Suitability | None, int]:
        """Ask the selectors one after the other, then compare capacities and taints.

        Args:
            kind: The kind of device.
            most: How much it may take: once that is passed no other selector is asked before the next time. Units:
                steps.

        Returns:
            The answer, None where some selectors are still to be asked, and what it took. Units: steps.
        """
        effort, asked = _STEPS_A_KIND, self._begun[1] if self._begun[0] is kind else 0
        for place in range(asked, len(self._selectors)):
            if effort > most and place > asked:
                self._begun = kind, place
                return None, effort
            one = self._selectors[place]
            matches, work = one.matches(kind)
            effort += 1 + work // _WORK_A_STEP
            if isinstance(matches, AllocationFailure):
                return Suitability(matches, False, False, None), effort
            if not matches:
                return _UNSUITABLE, effort
        traits = kind.traits
        effort += _STEPS_A_CAPACITY * len(traits.capacity)
        takes = consumption(self._capacity, traits.capacity)
        is_tolerated = all(any(tolerates(each, taint) for each in self._tolerations) for taint in traits.taints)
        return Suitability(None, takes is not None and takes.fits(), is_tolerated, takes), effort

    def refusal(self, kind: DeviceKind) -> tuple[str, int]:
        """Say which selector keeps a kind of device out, or that it lacks a capacity; empty where neither does.

        Returns:
            That, and what it took. Units: steps.
        """
        effort = _STEPS_A_KIND
        for one in self._selectors:
            matches, work = one.matches(kind)
            effort += 1 + work // _WORK_A_STEP
            if isinstance(matches, AllocationFailure):
                return f"{matches.text.removeprefix(': ')}{matches.rest}", effort
            if not matches:
                return f"{one.name} is false", effort
        takes = consumption(self._capacity, kind.traits.capacity)
        return "" if takes is not None and takes.fits() else "it does not have the requested capacity", effort


def evaluate_kinds(
    requirements: Sequence[DeviceRequirement],
    kinds: Iterable[DeviceKind],
    known: Sequence[dict[int, Suitability]],
    steps: Budget,
) -> None:
    """Add the suitability of kinds of devices to what is known for each requirement.

    Raises:
        BudgetExceededError: The budget is used up; the next call continues.
    """
    for kind in kinds:
        for requirement, suitabilities in zip(requirements, known, strict=True):
            if kind.number not in suitabilities:
                found, effort = requirement.suitability(kind, steps.left)
                if found is not None:
                    suitabilities[kind.number] = found
                steps.spend(effort)
        kind.forget_variables()


class _Selector:
    __slots__ = ("_from_class", "_place", "compiled")

    def __init__(self, from_class: str | None, place: int, selector: DeviceSelector) -> None:
        self._from_class = from_class
        self._place = place
        self.compiled = _PROGRAMS.compiled(selector.cel.expression if selector.cel is not None else "")

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"{self._from_class or ''}selector #{self._place}"

    def matches(self, kind: DeviceKind) -> tuple[bool | AllocationFailure, int]:
        """Return whether a kind of device matches, and the cost of the evaluation."""
        if isinstance(self.compiled, str):
            return self._failure(f"CEL compile error: {self.compiled}"), 0
        if kind.traits.trouble:
            return self._failure(f"CEL runtime error: {kind.traits.trouble}"), 0
        matches, work = self.compiled.matches(kind.variables), self.compiled.work.spent
        return (self._failure(f"CEL runtime error: {matches}") if isinstance(matches, str) else matches), work

    def _failure(self, reason: str) -> AllocationFailure:
        text = f"selector #{self._place}: {cut_bytes(reason, _LONGEST_REASON, '...')}"
        return (
            AllocationFailure.of_claim(": " + text)
            if self._from_class is None
            else AllocationFailure(self._from_class + text)
        )


class Programs:
    """Selectors that were compiled, by their texts; those that were asked for longest ago go.

    Args:
        most: How many characters they may have together.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, CompiledSelector | str] = {}
        self._characters = 0

    def __contains__(self, text: str) -> bool:
        return text in self._kept

    def compiled(self, text: str) -> CompiledSelector | str:
        """Return a selector, or what is wrong with it."""
        found = self._kept.pop(text, None)
        if found is None:
            found = _compile(text)
            self._characters += len(text)
        self._kept[text] = found
        while self._characters > self._most and len(self._kept) > 1:
            gone = next(iter(self._kept))
            del self._kept[gone]
            self._characters -= len(gone)
        return found


_PROGRAMS: Final = Programs(1 << 19)


def compile_ahead(texts: Iterable[str], steps: Budget) -> None:
    """Compile selectors that claims have: one that is not known, and as many more as the steps allow.

    Raises:
        BudgetExceededError: there are more; those that were compiled are known next time.
    """
    has_compiled = False
    for text in texts:
        if text not in _PROGRAMS:
            effort = min(_STEPS_A_CHARACTER * len(text), _STEPS_A_SELECTOR)
            if has_compiled and effort > steps.left:
                raise BudgetExceededError
            steps.left -= effort
            has_compiled = True
        _PROGRAMS.compiled(text)
    if steps.left < -_STEPS_TO_SPARE:
        raise BudgetExceededError


def _compile(expression: str) -> CompiledSelector | str:
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
