"""Compiled label selectors, and requirements on single labels.

Node selectors in `node_selectors` build on this module. A requirement is evaluated for one value of its label
(`admits`), so a column can evaluate it per distinct value instead of per object.

Source: apimachinery/pkg/labels/selector.go, pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector), v0.36.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import zip_longest
from typing import Final, NamedTuple, assert_never

from policysched.model.objects import LabelSelector, Requirement
from policysched.model.selection.name_validation import invalid, is_label_value, is_qualified_name, requirement_fault

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


class SelectorError(ValueError):
    """Raised if a selector is invalid, so that the API server would have rejected it."""


class Operator(StrEnum):
    """The operators of requirements on a label's value."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


_OF_LABELS: Final = frozenset((Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST))
"""The operators of label selectors; only node selectors have Gt and Lt."""
_LISTING: Final[Mapping[str, Operator]] = {one.value: one for one in (Operator.IN, Operator.NOT_IN)}
FEW_VALUES: Final = 4
"""Maximum number of values of a requirement that is indexed by value."""
FEW: Final = 8
"""Maximum number of values or requirements that are searched without an index."""
BYTES_PER_LABEL, BYTES_PER_VALUE = 256, 96
"""Estimated memory of a requirement, and of a value of a requirement. Units: bytes."""


def contradicted(selector: LabelSelector) -> str | None:
    """Return a label on which requirements of a valid selector contradict each other; None if they do not."""
    stated: dict[str, list[Requirement]] = {}
    for key, value in selector.match_labels.items():
        stated[key] = [Requirement(key, Operator.IN, (value,))]
    for one in selector.match_expressions:
        stated.setdefault(one.key, []).append(one)
    return next((key for key, found in stated.items() if _exclude_each_other(found)), None)


def _exclude_each_other(requirements: Iterable[Requirement]) -> bool:
    """Return whether requirements on one label can be met neither by any value nor by an object without the label."""
    allowed: set[str] | None = None
    refused: set[str] = set()
    operators = set()
    for one in requirements:
        operators.add(one.operator)
        if one.operator == Operator.IN:
            allowed = set(one.values) if allowed is None else allowed.intersection(one.values)
        elif one.operator == Operator.NOT_IN:
            refused.update(one.values)
    if Operator.DOES_NOT_EXIST in operators:
        return not operators.isdisjoint((Operator.IN, Operator.EXISTS))
    return allowed is not None and allowed <= refused


class LabelRequirement(NamedTuple):
    """A requirement on one label; values of In and NotIn are sorted, `bound` is the number for Gt and Lt."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    bound: int = 0

    def admits(self, value: str | None) -> bool:
        """Return whether the requirement allows a value of the label; None means an object without the label."""
        match self.operator:
            case Operator.IN:
                return self._lists(value)
            case Operator.NOT_IN:
                return not self._lists(value)
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GREATER | Operator.LESS:
                return self._compares(value)
            case _:
                assert_never(self.operator)

    def _lists(self, value: str | None) -> bool:
        values = self.values
        if value is None or len(values) <= FEW:
            return value in values
        place = bisect_left(values, value)
        return place < len(values) and values[place] == value

    def _compares(self, value: str | None) -> bool:
        number = None if value is None else int64(value)
        if number is None:
            return False
        return number > self.bound if self.operator is Operator.GREATER else number < self.bound


class OfLabel:
    """All requirements of a label selector on one label, combined.

    Attributes:
        admits_absence: Whether an object may be without the label.
    """

    __slots__ = ("_allowed", "_banned", "_beyond", "_bounds", "admits_absence")

    def __init__(self, requirements: Iterable[LabelRequirement]) -> None:
        self._allowed: frozenset[str] | None = None
        """The values that the label may have; None if any value is allowed."""
        self._banned: set[str] = set()
        self._bounds: tuple[int | None, int | None] = None, None
        """The exclusive lower and upper bound of the label's value as a number."""
        self.admits_absence, self._beyond = True, False
        for one in requirements:
            match one.operator:
                case Operator.IN:
                    self._allow(one.values)
                case Operator.NOT_IN:
                    self._banned.update(one.values)
                    continue
                case Operator.DOES_NOT_EXIST:
                    self._allowed = frozenset()
                    continue
                case Operator.GREATER | Operator.LESS:
                    self._bound(one)
            self.admits_absence = False

    def _allow(self, values: Iterable[str]) -> None:
        self._allowed = frozenset(values if self._allowed is None else self._allowed.intersection(values))

    def _bound(self, one: LabelRequirement) -> None:
        """Combine the bound of a Gt or Lt requirement with the bounds of earlier requirements."""
        above, below = self._bounds
        if one.operator is Operator.GREATER:
            above = one.bound if above is None else max(above, one.bound)
        else:
            below = one.bound if below is None else min(below, one.bound)
        self._bounds, self._beyond = (above, below), True

    def admits(self, value: str) -> bool:
        """Return whether all requirements on the label allow a value."""
        if value in self._banned or (self._allowed is not None and value not in self._allowed):
            return False
        return not self._beyond or self._is_within(value)

    def _is_within(self, value: str) -> bool:
        number = int64(value)
        above, below = self._bounds
        return number is not None and (above is None or number > above) and (below is None or number < below)

    def among(self, values: KeysView[str]) -> tuple[Collection[str], bool]:
        """Return the allowed `values` and True, or the rejected `values` and False, whichever is faster to find.

        Cost: proportional to the smaller of the values and the listed ones; with numeric comparisons, to the values.
        """
        if self._allowed is None and not self._beyond:
            return values & self._banned, False
        if self._beyond:
            return [
                one for one in (values if self._allowed is None else values & self._allowed) if self.admits(one)
            ], True
        return (values & (self._allowed or frozenset())) - self._banned, True


class ByLabel:
    """Many label requirements, indexed by label, so that only those on an object's labels are evaluated.

    Attributes:
        demanded: The labels that an object must have.
        stated: The requirements by their labels.
    """

    __slots__ = ("_allowed", "_banned", "_forbidden", "_listed", "_looked_up", "_of", "demanded", "stated")

    def __init__(self, requirements: Iterable[LabelRequirement]) -> None:
        self.stated: dict[str, list[LabelRequirement]] = {}
        self.demanded: set[str] = set()
        self._forbidden: set[str] = set()
        self._looked_up: dict[str, list[LabelRequirement]] = {}
        """The requirements that compare numbers or list many values, which are not indexed by value."""
        self._banned: set[tuple[str, str]] = set()
        listed: dict[str, set[str]] = {}
        for one in requirements:
            self.stated.setdefault(one.key, []).append(one)
            match one.operator:
                case Operator.DOES_NOT_EXIST:
                    self._forbidden.add(one.key)
                case Operator.NOT_IN if len(one.values) <= FEW_VALUES:
                    self._banned.update((one.key, value) for value in one.values)
                case Operator.IN if len(one.values) <= FEW_VALUES:
                    listed[one.key] = listed[one.key].intersection(one.values) if one.key in listed else {*one.values}
                case Operator.EXISTS:
                    pass
                case _:
                    self._looked_up.setdefault(one.key, []).append(one)
            if one.operator is not Operator.NOT_IN and one.operator is not Operator.DOES_NOT_EXIST:
                self.demanded.add(one.key)
        self._allowed = {(key, value) for key, values in listed.items() for value in values}
        self._listed = len(listed)
        """Number of labels for which In requirements with few values exist."""
        self._of: dict[str, OfLabel] = {}

    def of(self, label: str) -> OfLabel:
        """Return all requirements on a label, combined; the label must have requirements."""
        known = self._of.get(label)
        if known is None:
            known = self._of[label] = OfLabel(self.stated[label])
        return known

    def admit(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels satisfies all requirements."""
        keys, items = labels.keys(), labels.items()
        return (
            keys >= self.demanded
            and keys.isdisjoint(self._forbidden)
            and items.isdisjoint(self._banned)
            and len(items & self._allowed) == self._listed
            and all(one.admits(labels[key]) for key in self._looked_up.keys() & keys for one in self._looked_up[key])
        )


@dataclass(frozen=True, slots=True)
class LabelMatcher:
    """A compiled label selector: requirements that must all hold, sorted, so that equivalent selectors are equal.

    Missing: requirements None select nothing.
    """

    requirements: tuple[LabelRequirement, ...] | None = ()
    _by_label: ByLabel | None = field(default=None, init=False, repr=False, compare=False)
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)
    _narrowest: LabelRequirement | None = field(default=None, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(self.requirements))
        return self._hash or 0

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels is selected.

        Cost: with many requirements O(labels of the object), and once O(requirements).
        """
        if self.requirements is None:
            return False
        if len(self.requirements) > FEW:
            if self._by_label is None:
                object.__setattr__(self, "_by_label", ByLabel(self.requirements))
            return self._by_label is not None and self._by_label.admit(labels)
        for one in self.requirements:  # noqa: SIM110 - asked very often, and three times as fast as a generator
            if not one.admits(labels.get(one.key)):
                return False
        return True

    def matches_at_once(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels is selected, without building an index for later calls.

        Cost: O(requirements up to the first that does not hold).
        """
        return self.requirements is not None and all(one.admits(labels.get(one.key)) for one in self.requirements)

    @property
    def narrowest(self) -> LabelRequirement | None:
        """The In requirement with the fewest values; None without an In requirement."""
        if self._narrowest is None:
            exact = [one for one in self.requirements or () if one.operator is Operator.IN]
            if not exact:
                return None
            object.__setattr__(self, "_narrowest", min(exact, key=lambda one: len(one.values)))
        return self._narrowest

    @property
    def nbytes(self) -> int:
        """Estimated memory of the selector. Units: bytes."""
        return sum(BYTES_PER_LABEL + BYTES_PER_VALUE * len(one.values) for one in self.requirements or ())

    @property
    def keys(self) -> frozenset[str]:
        """The labels on which the result of the selector depends."""
        return frozenset(one.key for one in self.requirements or ())

    @property
    def selects_nothing(self) -> bool:
        """Whether the selector matches no object."""
        return self.requirements is None

    @property
    def selects_everything(self) -> bool:
        """Whether the selector matches every object."""
        return self.requirements == ()

    def narrowed(self, labels: Mapping[str, str]) -> LabelMatcher:
        """Return the selector with further required labels; a selector that matches nothing stays unchanged."""
        if self.requirements is None:
            return self
        return _matcher((*self.requirements, *_exactly(labels)))

    def joined(self, other: LabelMatcher) -> LabelMatcher:
        """Return a selector for objects that both selectors match; `other` is ignored if it matches nothing."""
        if not other.requirements or self.requirements is None:
            return self
        if not self.requirements:
            return other
        return _matcher((*self.requirements, *other.requirements))


NOTHING: Final = LabelMatcher(None)
EVERYTHING: Final = LabelMatcher(())


def compile_selector(selector: LabelSelector | None) -> LabelMatcher:
    """Compile a label selector; an absent selector matches nothing, an empty selector everything.

    Raises:
        SelectorError: an operator is unknown, or a key or value is invalid for it.
    """
    if selector is None:
        return NOTHING
    for key, value in selector.match_labels.items():
        if not (is_qualified_name(key) and is_label_value(value)):
            raise SelectorError(requirement_fault(key, (value,), ()))
    exactly = _exactly(selector.match_labels)
    if not selector.match_expressions:
        return LabelMatcher(exactly if len(exactly) == 1 else tuple(sorted(exactly)))
    return _matcher((*exactly, *map(_label_requirement, selector.match_expressions)))


def selector_key(selector: LabelSelector | None) -> Hashable:
    """Return a hashable key of a label selector."""
    if selector is None:
        return None
    return (*selector.match_labels.items(),), (*selector.match_expressions,)


class SelectorCompiler:
    """Compiles label selectors and caches the compiled selectors."""

    __slots__ = ("_compiled",)

    def __init__(self) -> None:
        self._compiled: dict[Hashable, LabelMatcher] = {}

    def __call__(self, selector: LabelSelector | None) -> LabelMatcher:
        """Compile a label selector, or return the cached compiled selector.

        Raises:
            SelectorError: as `compile_selector`.
        """
        if selector is None:
            return NOTHING
        key = selector_key(selector)
        known = self._compiled.get(key)
        if known is None:
            known = self._compiled[key] = compile_selector(selector)
        return known


def match_labels(labels: Mapping[str, str]) -> LabelMatcher:
    """Compile a map of labels, as in `nodeSelector` and in Services, without validation."""
    return LabelMatcher(_exactly(dict(sorted(labels.items()))))


def requirement(one: Requirement) -> LabelRequirement:
    """Compile a requirement of a label or node selector, with any of the six operators.

    Raises:
        SelectorError: the operator is unknown, or the key or a value is invalid for it.
    """
    operator = _LISTING.get(one.operator)
    if operator is not None and one.values and is_qualified_name(one.key) and all(map(is_label_value, one.values)):
        return LabelRequirement(one.key, operator, tuple(one.values) if len(one.values) == 1 else _sorted(one.values))
    try:
        operator = Operator(one.operator)
    except ValueError as error:
        raise SelectorError(f'"{one.operator}" is not a valid selector operator') from error
    faults = list(_operator_faults(operator, one.values))
    if faults or not (is_qualified_name(one.key) and all(map(is_label_value, one.values))):
        raise SelectorError(requirement_fault(one.key, one.values, faults))
    if operator in (Operator.GREATER, Operator.LESS):
        return LabelRequirement(one.key, operator, one.values, int64(one.values[0]) or 0)
    return LabelRequirement(one.key, operator, _sorted(one.values))


def _sorted(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def int64(text: str) -> int | None:
    """Parse a decimal 64-bit integer; return None if the text is no such integer."""
    if len(text) > 40 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def _operator_faults(operator: Operator, values: tuple[str, ...]) -> Iterator[str]:
    """Yield the errors of a requirement's values for its operator."""
    match operator:
        case Operator.IN | Operator.NOT_IN:
            if not values:
                yield invalid("values", values, "for 'in', 'notin' operators, values set can't be empty")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if values:
                yield invalid("values", values, "values set must be empty for exists and does not exist")
        case Operator.GREATER | Operator.LESS:
            yield from _comparison_faults(values)
        case _:
            assert_never(operator)


def _comparison_faults(values: tuple[str, ...]) -> Iterator[str]:
    if len(values) != 1:
        yield invalid("values", values, "for 'Gt', 'Lt' operators, exactly one value is required")
    for index, value in enumerate(values):
        if int64(value) is None:
            yield invalid(f"values[{index}]", value, "for 'Gt', 'Lt' operators, the value must be an integer")


def _label_requirement(one: Requirement) -> LabelRequirement:
    if one.operator not in _OF_LABELS:
        raise SelectorError(f'"{one.operator}" is not a valid label selector operator')
    return requirement(one)


def _exactly(labels: Mapping[str, str]) -> tuple[LabelRequirement, ...]:
    return tuple([LabelRequirement(key, Operator.IN, (value,)) for key, value in labels.items()])


def _matcher(requirements: Iterable[LabelRequirement]) -> LabelMatcher:
    found = sorted(requirements)
    if len(found) == 1:
        return LabelMatcher((found[0],))
    return LabelMatcher((*(one for one, after in zip_longest(found, found[1:]) if one != after),))
