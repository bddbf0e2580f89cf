"""Translates a filter's condition into a set of nodes with at least all nodes on which the condition is true.

The set is exact if the condition reads only labels and names of nodes, in comparisons that a node selector has. Parts
of the condition that a node selector cannot express are replaced by the labels that they need, or by all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from policysched.language.checking.doubts import required
from policysched.language.ir.graph import Input, Op, Typed, make
from policysched.language.ir.types import WELL_KNOWN_LABELS, Kind, Shape
from policysched.model.selection.name_validation import is_label_value, is_qualified_name, is_subdomain
from policysched.rules.translation.node_sets import (
    EVERYTHING,
    NAME,
    NOTHING,
    Allowed,
    NodeSet,
    Subject,
    TooManyTermsError,
)

Fold = Callable[[Typed], "Folded | None"]
"""Function that returns the value of an expression that is equal for all nodes and never changes; else None."""
ALTERNATIVES: Final = "the combination of its alternatives"
_POSITIVE: Final = frozenset({Op.EQ, Op.IN})
_COMPARISONS: Final = frozenset({Op.EQ, Op.NE, Op.IN, Op.NOT_IN})


@dataclass(frozen=True, slots=True)
class Folded:
    """A value of an expression that is known in advance; None as `value` means missing, or unknown for a condition."""

    value: object


@dataclass(frozen=True, slots=True)
class Approximation:
    """A set of nodes with at least all nodes on which a condition can be true (or false)."""

    nodes: NodeSet
    is_exact: bool = True
    """Whether the set has only nodes on which the condition can be true (or false)."""
    unexpressed: tuple[str, ...] = ()
    """The parts of the condition that the set ignores, in the order of their text."""

    def __and__(self, other: Approximation) -> Approximation:
        for one in (self, other):
            if one.is_exact and one.nodes == NOTHING:
                return one
        unexpressed = tuple(dict.fromkeys((*self.unexpressed, *other.unexpressed)))
        try:
            both = self.nodes & other.nodes
        except TooManyTermsError:
            smaller = min(self.nodes, other.nodes, key=lambda nodes: len(nodes.terms))
            return Approximation(smaller, False, (*unexpressed, ALTERNATIVES))
        return Approximation(both, self.is_exact and other.is_exact, unexpressed)

    def __or__(self, other: Approximation) -> Approximation:
        for one in (self, other):
            if one.is_exact and one.nodes == EVERYTHING:
                return one
        unexpressed = tuple(dict.fromkeys((*self.unexpressed, *other.unexpressed)))
        return Approximation(self.nodes | other.nodes, self.is_exact and other.is_exact, unexpressed)


ALWAYS: Final = Approximation(EVERYTHING)
NEVER: Final = Approximation(NOTHING)


def translate(root: Typed, fold: Fold) -> Approximation:
    """Return a set of nodes with at least all nodes on which a condition is true.

    Args:
        root: The condition.
        fold: Returns the values of expressions that are equal for all nodes, such as labels of the pod.
    """
    return _Translation(fold).of(root, truth=True)


class _Translation:
    """A running translation, which visits each part of the condition once for true and once for false."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._known: dict[tuple[Typed, bool], Approximation] = {}

    def of(self, node: Typed, *, truth: bool) -> Approximation:
        """Return the nodes on which a condition can be true or, with `truth=False`, false."""
        found = self._known.get((node, truth))
        if found is None:
            found = self._known[node, truth] = self._translated(node, truth=truth)
        return found

    def _translated(self, node: Typed, *, truth: bool) -> Approximation:
        folded = self._fold(node) if node.type.shape is Shape.SCALAR else None
        if folded is not None:
            return ALWAYS if folded.value is truth else NEVER
        match node.op:
            case Op.NOT:
                return self.of(node.args[0], truth=not truth)
            case Op.AND | Op.OR:
                return self._combined(node.args, truth=truth, all_of=(node.op == Op.AND) is truth)
            case Op.IF:
                return self._either(node.args, truth=truth)
            case Op.DEFAULT:
                return self._with_default(node.args, truth=truth)
            case _:
                return self._leaf(node, truth=truth)

    def _leaf(self, node: Typed, *, truth: bool) -> Approximation:
        allowed = self._allowed(node)
        if allowed is None:
            return self._unexpressed(node, truth=truth)
        subject, values = allowed
        return Approximation(NodeSet.of(subject, values if truth else ~values))

    def _combined(self, conditions: Sequence[Typed], *, truth: bool, all_of: bool) -> Approximation:
        found = ALWAYS if all_of else NEVER
        for condition in conditions:
            one = self.of(condition, truth=truth)
            found = found & one if all_of else found | one
        return found

    def _either(self, args: Sequence[Typed], *, truth: bool) -> Approximation:
        condition, first, second = args
        return (self.of(condition, truth=True) & self.of(first, truth=truth)) | (
            self.of(condition, truth=False) & self.of(second, truth=truth)
        )

    def _with_default(self, args: Sequence[Typed], *, truth: bool) -> Approximation:
        """Return the nodes for `x ?? y`: the nodes for x, and the nodes for y on which x may be unknown."""
        condition, fallback = args
        known, other = self.of(condition, truth=truth), self.of(fallback, truth=truth)
        if not condition.type.optional or (other.is_exact and other.nodes == NOTHING):
            return known
        unknown = Approximation(EVERYTHING, False, _read(condition))
        return known | (unknown & other)

    def _unexpressed(self, node: Typed, *, truth: bool) -> Approximation:
        """Return the nodes with the labels that a condition needs, for a part that cannot be expressed."""
        holds = node if truth else make(Op.NOT, (node,), node.type)
        found = Approximation(EVERYTHING, False, _read(node))
        for part in sorted(required(holds), key=repr):
            subject = subject_of(part, self._fold)
            if subject is not None and not subject.is_name:
                found &= Approximation(NodeSet.of(subject, Allowed(frozenset(), False, False)), False)
        return found

    def _allowed(self, node: Typed) -> tuple[Subject, Allowed] | None:
        """Return a label or name with the values for which a comparison is true; None for other conditions."""
        if node.op == Op.HAS:
            subject = subject_of(node.args[0], self._fold)
            return None if subject is None else (subject, Allowed(frozenset(), False, subject.is_name))
        if node.op not in _COMPARISONS or node.args[0].type.kind is not Kind.STRING:
            return None
        for label, other in (node.args, node.args[::-1]):
            compared = self._compared(label)
            folded = self._fold(other) if other.type.shape is Shape.SCALAR else None
            if compared is not None and folded is not None:
                subject, default = compared
                values = _strings(folded.value)
                allowed = Allowed(_possible(subject, values), True, default in values)
                return subject, allowed if node.op in _POSITIVE else ~allowed
        return None

    def _compared(self, node: Typed) -> tuple[Subject, str | None] | None:
        """Return the label or name that a string is read from, and its value on nodes without the label."""
        if node.op == Op.DEFAULT:
            subject, fallback = subject_of(node.args[0], self._fold), node.args[1]
            folded = self._fold(fallback) if fallback.type.shape is Shape.SCALAR else None
            if subject is None or folded is None:
                return None
            return subject, folded.value if isinstance(folded.value, str) else None
        subject = subject_of(node, self._fold)
        return None if subject is None else (subject, None)


def subject_of(node: Typed, fold: Fold) -> Subject | None:
    """Return the label or name of a node that an expression reads; None for other expressions."""
    item = node.data
    if not isinstance(item, Input) or item.root != "node":
        return None
    if item.path == ("name",):
        return NAME
    if item.path[0] in WELL_KNOWN_LABELS:
        return Subject(WELL_KNOWN_LABELS[item.path[0]])
    if item.path != ("labels",):
        return None
    if node.op != Op.KEYED:
        return _label(item.key)
    folded = fold(node.args[0])
    return None if folded is None else _label(folded.value)


def _read(node: Typed) -> tuple[str, ...]:
    """Return the inputs of a condition as text, without inputs of the pod unless there are no others."""
    beyond = [item for item in node.inputs if item.root != "pod"] or node.inputs
    return tuple(f"this comparison of {item.text}" if _is_label(item) else item.text for item in beyond)


def _label(key: object) -> Subject:
    return Subject(key) if isinstance(key, str) and is_qualified_name(key) else Subject("")


def _is_label(item: Input) -> bool:
    return item.root == "node" and item.path[0] in {"name", "labels", *WELL_KNOWN_LABELS}


def _strings(value: object) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset((value,))
    return frozenset(one for one in value if isinstance(one, str)) if isinstance(value, tuple) else frozenset()


def _possible(subject: Subject, values: frozenset[str]) -> frozenset[str]:
    """Return those of the given values that a node can have; API servers reject selectors with other values."""
    return frozenset(filter(is_subdomain if subject.is_name else is_label_value, values))
