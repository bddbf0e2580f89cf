"""Sets of nodes that node affinity can describe, by labels and by name.

A set is a union of terms, as in a node selector. A term limits labels, or the name, to allowed values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias

from policysched.model.objects.meta import Requirement
from policysched.model.objects.pods import NodeSelectorTerm
from policysched.model.selection.selectors import Operator

MOST_TERMS: Final = 64
"""Maximum number of terms of an intersection; beyond it, `TooManyTermsError` is raised."""
_NO_NODE: Final = NodeSelectorTerm(
    match_expressions=tuple(
        Requirement(key="kubernetes.io/hostname", operator=operator)
        for operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST)
    )
)
"""A term that matches no node."""


class TooManyTermsError(Exception):
    """Raised if an intersection has more than `MOST_TERMS` terms."""


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """The label key or name field that a requirement of a node selector limits."""

    key: str
    """The key of the label, or the name's field; empty for a label that no node can have."""
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values of a label (or name) that a term of a node selector allows."""

    values: frozenset[str]
    are_listed: bool
    """Whether only `values` are allowed; if not, all values except `values` are allowed."""
    missing: bool
    """Whether a node without the label is allowed."""

    @property
    def is_empty(self) -> bool:
        """Whether no value is allowed, and no node without the label."""
        return self.are_listed and not self.values and not self.missing

    @property
    def is_everything(self) -> bool:
        """Whether every value is allowed, and nodes without the label."""
        return not self.are_listed and not self.values and self.missing

    def __invert__(self) -> Allowed:
        return Allowed(self.values, not self.are_listed, not self.missing)

    def __and__(self, other: Allowed) -> Allowed:
        missing = self.missing and other.missing
        if self.are_listed and other.are_listed:
            return Allowed(self.values & other.values, True, missing)
        if not self.are_listed and not other.are_listed:
            return Allowed(self.values | other.values, False, missing)
        listed, excluded = (self, other) if self.are_listed else (other, self)
        return Allowed(listed.values - excluded.values, True, missing)

    def __or__(self, other: Allowed) -> Allowed:
        return ~(~self & ~other)


Term: TypeAlias = Mapping[Subject, Allowed]
"""Allowed values of several labels, all of which a node must have; an empty term has all nodes."""


@dataclass(frozen=True, slots=True)
class NodeSet:
    """A set of nodes as a union of terms; without terms, it is empty."""

    terms: tuple[Term, ...]

    @staticmethod
    def of(subject: Subject, allowed: Allowed) -> NodeSet:
        """Return the nodes on which a label or name has an allowed value."""
        if not subject.key:
            return EVERYTHING if allowed.missing else NOTHING
        if allowed.is_empty:
            return NOTHING
        return EVERYTHING if allowed.is_everything else NodeSet(({subject: allowed},))

    @property
    def is_everything(self) -> bool:
        """Whether the set has all nodes."""
        return any(not term for term in self.terms)

    def __or__(self, other: NodeSet) -> NodeSet:
        if self.is_everything or other.is_everything:
            return EVERYTHING
        terms = [*self.terms]
        for term in other.terms:
            _add(terms, term)
        return NodeSet(tuple(terms))

    def __and__(self, other: NodeSet) -> NodeSet:
        """Return the intersection of two sets.

        Raises:
            TooManyTermsError: the intersection has too many terms.
        """
        terms: list[Term] = []
        for pair in product(self.terms, other.terms):
            both = _intersection(*pair)
            if both is not None:
                _add(terms, both)
            if len(terms) > MOST_TERMS:
                raise TooManyTermsError
        return EVERYTHING if any(not term for term in terms) else NodeSet(tuple(terms))

    def selector_terms(self) -> list[NodeSelectorTerm]:
        """Return the terms of a node selector that matches these nodes, which must not be all nodes."""
        found = [made for term in self.terms for made in _selector_terms(term)]
        return found or [_NO_NODE]


NAME: Final = Subject("metadata.name", is_name=True)
EVERYTHING: Final = NodeSet(({},))
NOTHING: Final = NodeSet(())


def _add(terms: list[Term], new: Term) -> None:
    """Add a term to a union; merge two terms that differ in one label."""
    for place, known in enumerate(terms):
        merged = _merged(known, new)
        if merged is not None:
            del terms[place]
            _add(terms, merged)
            return
    terms.append(new)


def _merged(one: Term, other: Term) -> Term | None:
    """Return the term that equals the union of two terms; None if their union is not a term."""
    different = [subject for subject in one.keys() | other.keys() if one.get(subject) != other.get(subject)]
    if not different:
        return one
    if len(different) > 1 or not all(different[0] in term for term in (one, other)):
        return one if _contains(one, other) else other if _contains(other, one) else None
    subject = different[0]
    union = one[subject] | other[subject]
    rest = {key: value for key, value in one.items() if key != subject}
    return rest if union.is_everything else rest | {subject: union}


def _contains(one: Term, other: Term) -> bool:
    """Return whether a term has all nodes of another term."""
    return all(subject in other and other[subject] & allowed == other[subject] for subject, allowed in one.items())


def _intersection(one: Term, other: Term) -> Term | None:
    found = dict(one)
    for subject, allowed in other.items():
        both = found[subject] & allowed if subject in found else allowed
        if both.is_empty:
            return None
        found[subject] = both
    return found


def _selector_terms(term: Term) -> Iterable[NodeSelectorTerm]:
    """Return node selector terms whose union equals a term.

    One requirement of Kubernetes cannot allow listed values and a missing label, nor list several names.
    """
    choices = [_requirements(subject, allowed) for subject, allowed in sorted(term.items(), key=lambda one: one[0])]
    for chosen in product(*choices):
        labels: list[Requirement] = []
        names: list[Requirement] = []
        for subject, requirements in zip(sorted(term), chosen, strict=True):
            (names if subject.is_name else labels).extend(requirements)
        yield NodeSelectorTerm(match_expressions=tuple(labels), match_fields=tuple(names))


def _requirements(subject: Subject, allowed: Allowed) -> list[list[Requirement]]:
    """Return alternatives for the allowed values of a label; each is a list of requirements that must all be met."""

    def requires(operator: Operator, *values: str) -> Requirement:
        return Requirement(key=subject.key, operator=operator, values=values)

    values = sorted(allowed.values)
    if subject.is_name:
        each = Operator.IN if allowed.are_listed else Operator.NOT_IN
        alone = [requires(each, value) for value in values]
        return [[one] for one in alone] if allowed.are_listed else [alone]
    if not allowed.are_listed:
        excluded = [requires(Operator.NOT_IN, *values)] if values else []
        return [excluded if allowed.missing else [requires(Operator.EXISTS), *excluded]]
    found = [[requires(Operator.IN, *values)]] if values else []
    return [*found, [requires(Operator.DOES_NOT_EXIST)]] if allowed.missing else found
