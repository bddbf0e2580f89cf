"""`DeviceRequirement`: the conditions of a request on each device: selectors, tolerations and capacities.

Source: k8s.io/dynamic-resource-allocation v0.36 structured/internal/incubating/allocator_incubating.go (isSelectable,
selectorsMatch, taintPreventsAllocation), resourceclaim/devicetoleration.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from policysched.budget import Budget, BudgetExceededError
from policysched.cel import CompiledSelector, InvalidDeviceSelectorError, Variables, compile_selector
from policysched.cel import Device as SelectorDevice
from policysched.devices.inventory.columns import DeviceTraits
from policysched.devices.requests.capacities import CapacityError, Consumption, consumption
from policysched.devices.requests.failures import AllocationFailure
from policysched.model.objects import (
    CapacityRequirements,
    DeviceAttribute,
    DeviceClass,
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
)
from policysched.model.release import Release
from policysched.visible import cut_bytes


@dataclass(eq=False, slots=True)
class DeviceKind:
    """A kind of device: devices that are equal in all fields that claims read.

    Attributes:
        attributes: The attributes that the claims read.
        number: The number of the kind.
    """

    traits: DeviceTraits
    attributes: dict[str, DeviceAttribute]
    number: int
    _variables: Variables | None = None

    def forget_variables(self) -> None:
        """Drop the CEL variables of the kind, which are computed again at their next use."""
        self._variables = None

    @property
    def variables(self) -> Variables:
        """The fields of the kind as CEL variables for selectors."""
        if self._variables is None:
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
    """Whether a kind of device meets a requirement, and the capacity that the request would consume.

    Attributes:
        failure: The error of a selector or of the capacities, None if there is none.
        is_able: Whether all selectors match and the capacities suffice, if nothing else consumes them.
        is_tolerated: Whether all repelling taints are tolerated.
        consumption: The amounts that the request takes of the capacities, None if the device cannot have them.
    """

    failure: AllocationFailure | None
    is_able: bool
    is_tolerated: bool
    consumption: Consumption | None

    @property
    def capacity_failed(self) -> bool:
        """Whether computing the consumed capacities failed."""
        return self.failure is not None and self.failure.names_request

    @property
    def selector_failed(self) -> bool:
        """Whether a selector failed with an error."""
        return self.failure is not None and not self.failure.names_request


_UNSUITABLE: Final = Suitability(None, False, False, None)
_STEPS_A_KIND: Final = 16
"""Cost of converting a kind of device to CEL variables. Units: steps of about a microsecond."""
_STEPS_A_CAPACITY: Final = 2
"""Cost of computing how much a request consumes of one capacity. Units: steps of about a microsecond."""
_STEPS_A_CHARACTER: Final = 4
"""Cost of compiling a selector, per character. Units: steps of about a microsecond."""
_STEPS_A_SELECTOR: Final = 40_000
"""Maximum cost of compiling one selector. Units: steps of about a microsecond."""
_STEPS_TO_SPARE: Final = 2_000
"""Cost by which compiling may exceed the budget without an error. Units: steps of about a microsecond."""
_LONGEST_REASON: Final = 4096
"""Maximum length of a selector's error in a message; longer errors are cut. Units: bytes of UTF-8."""
_ON_DEVICE: Final = " on device "
_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)
_WORK_A_STEP: Final = 6
"""Number of cost units of the CEL evaluator that are one step."""


class DeviceRequirement:
    """The compiled conditions of a request on each device.

    Args:
        device_class: The device class.
        selectors: The selectors of the request.
        tolerations: The tolerations of the request.
        capacity: The requested capacities.
        release: The Kubernetes release whose allocator is reproduced.
    """

    __slots__ = ("_begun", "_capacity", "_release", "_selectors", "_tolerations")

    def __init__(
        self,
        device_class: DeviceClass,
        selectors: Sequence[DeviceSelector],
        tolerations: Sequence[DeviceToleration],
        capacity: CapacityRequirements | None,
        release: Release,
    ) -> None:
        of_class, stated = f"class {device_class.metadata.name}: ", enumerate(device_class.spec.selectors)
        self._selectors = [_Selector(of_class, place, one, release) for place, one in stated]
        self._selectors += [_Selector(None, place, one, release) for place, one in enumerate(selectors)]
        self._tolerations = tuple(tolerations)
        self._capacity = capacity
        self._release = release
        self._begun: tuple[DeviceKind | None, int] = (None, 0)
        """The kind whose evaluation ran out of steps, and how many of its selectors were evaluated."""

    def reads(self) -> frozenset[str] | None:
        """Return the names of the attributes that selectors read, with and without domain; None for any attribute."""
        names: set[str] = set()
        for one in self._selectors:
            if not isinstance(one.compiled, str):
                if one.compiled.reads is None:
                    return None
                names.update(f"{domain}/{name}" for domain, name in one.compiled.reads)
                names.update(name for _, name in one.compiled.reads)
        return frozenset(names)

    def suitability(self, kind: DeviceKind, most: int) -> tuple[Suitability | None, int]:
        """Evaluate selectors, capacities and taints of a kind of device, with at most `most` steps.

        Args:
            kind: The kind of device.
            most: Number of steps after which no other selector is evaluated.

        Returns:
            The suitability, None if the next call must continue, and the used steps.
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
        try:
            takes = consumption(self._capacity, traits.capacity, traits.driver, self._release)
        except CapacityError as error:
            failure = AllocationFailure.of_claim(": checking capacity for device ")
            return Suitability(failure._replace(names_request=True, rest=f": {error}"), False, False, None), effort
        is_tolerated = all(any(tolerates(each, taint) for each in self._tolerations) for taint in traits.taints)
        return Suitability(None, takes is not None and takes.fits(), is_tolerated, takes), effort

    def refusal(self, kind: DeviceKind) -> tuple[str, int]:
        """Return why a kind of device fails selectors or capacities, empty if it passes, and the number of steps."""
        effort = _STEPS_A_KIND
        for one in self._selectors:
            matches, work = one.matches(kind)
            effort += 1 + work // _WORK_A_STEP
            if isinstance(matches, AllocationFailure):
                return f"{matches.text.removeprefix(': ').removesuffix(_ON_DEVICE)}{matches.rest}", effort
            if not matches:
                return f"{one.name} is false", effort
        try:
            takes = consumption(self._capacity, kind.traits.capacity, kind.traits.driver, self._release)
        except CapacityError as error:
            return str(error), effort
        return "" if takes is not None and takes.fits() else "it does not have the requested capacity", effort


def evaluate_kinds(
    requirements: Sequence[DeviceRequirement],
    kinds: Iterable[DeviceKind],
    known: Sequence[dict[int, Suitability]],
    steps: Budget,
) -> None:
    """Evaluate requirements on kinds of devices; add the results to `known`, which has a dict per requirement.

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
    __slots__ = ("_from_class", "_names_device", "_place", "compiled")

    def __init__(self, from_class: str | None, place: int, selector: DeviceSelector, release: Release) -> None:
        self._from_class = from_class
        self._place = place
        self._names_device = release.selector_errors_name_devices
        text = selector.cel.expression if selector.cel is not None else ""
        self.compiled = _PROGRAMS.compiled(text, release.selectors_follow_cel_0_29)

    @property
    def name(self) -> str:
        """Name of the selector in messages."""
        return f"{self._from_class or ''}selector #{self._place}"

    def matches(self, kind: DeviceKind) -> tuple[bool | AllocationFailure, int]:
        """Return whether the selector matches a kind of device, and the cost of its evaluation."""
        if isinstance(self.compiled, str):
            return self._failure(f"selector #{self._place}: CEL compile error: {_cut(self.compiled)}"), 0
        if kind.traits.trouble:
            return self._runtime_failure(kind.traits.trouble), 0
        matches, work = self.compiled.matches(kind.variables), self.compiled.work.spent
        return (self._runtime_failure(matches) if isinstance(matches, str) else matches), work

    def _runtime_failure(self, reason: str) -> AllocationFailure:
        text, error = f"selector #{self._place}", f": CEL runtime error: {_cut(reason)}"
        if not self._names_device:
            return self._failure(text + error)
        hint = _HINT if "no such key:" in reason else ""
        return self._failure(text + _ON_DEVICE)._replace(rest=error + hint)

    def _failure(self, text: str) -> AllocationFailure:
        if self._from_class is None:
            return AllocationFailure.of_claim(": " + text)
        return AllocationFailure(self._from_class + text)


def _cut(reason: str) -> str:
    return cut_bytes(reason, _LONGEST_REASON, "...")


class Programs:
    """A cache of compiled selectors by text; the least recently used selectors are dropped.

    Args:
        most: Limit of the sum of the lengths of the texts. Units: characters.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[tuple[str, bool], CompiledSelector | str] = {}
        self._characters = 0

    def knows(self, text: str, cel_0_29: bool) -> bool:
        """Return whether a compiled selector is in the cache."""
        return (text, cel_0_29) in self._kept

    def compiled(self, text: str, cel_0_29: bool) -> CompiledSelector | str:
        """Return a compiled selector, or its compile error.

        Args:
            text: The selector.
            cel_0_29: Whether the rules are those of cel-go 0.29.
        """
        key = text, cel_0_29
        found = self._kept.pop(key, None)
        if found is None:
            found = _compile(text, cel_0_29)
            self._characters += len(text)
        self._kept[key] = found
        while self._characters > self._most and len(self._kept) > 1:
            gone = next(iter(self._kept))
            del self._kept[gone]
            self._characters -= len(gone[0])
        return found


_PROGRAMS: Final = Programs(1 << 19)


def compile_ahead(texts: Iterable[str], steps: Budget, release: Release) -> None:
    """Compile selectors into the cache, at least one that is not cached, and further ones within the budget.

    Args:
        texts: The selectors.
        steps: The budget.
        release: The Kubernetes release whose rules apply to selectors.

    Raises:
        BudgetExceededError: The budget is used up; the next call continues.
    """
    has_compiled = False
    for text in texts:
        if not _PROGRAMS.knows(text, release.selectors_follow_cel_0_29):
            effort = min(_STEPS_A_CHARACTER * len(text), _STEPS_A_SELECTOR)
            if has_compiled and effort > steps.left:
                raise BudgetExceededError
            steps.left -= effort
            has_compiled = True
        _PROGRAMS.compiled(text, release.selectors_follow_cel_0_29)
    if steps.left < -_STEPS_TO_SPARE:
        raise BudgetExceededError


def _compile(expression: str, cel_0_29: bool) -> CompiledSelector | str:
    try:
        return compile_selector(expression, cel_0_29=cel_0_29)
    except InvalidDeviceSelectorError as error:
        return str(error)


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Return whether a toleration matches a device taint; an empty key or effect matches every key or effect."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
