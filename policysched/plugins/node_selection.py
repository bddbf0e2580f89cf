"""Node selectors answered on columns: a compiled selector becomes a test that takes rows and gives a mask.

Knows columns and compiled selectors, no plugin. The values of a single-valued requirement are compared as codes;
all others are judged once per distinct value, so nothing is done per row in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from policysched.framework import Mask, Rows
from policysched.model.node_selectors import NAME_FIELD, FieldRequirement, NodeSelectorMatcher, NodeTerm
from policysched.model.selectors import LabelRequirement, Operator
from policysched.plugins.bases import row_count
from policysched.plugins.verdicts import Verdicts
from policysched.state.nodes import NodeTable

Test = Callable[[Rows], Mask]
"""Which of the rows hold what is asked.

Shapes: R rows -> (R,) bool, a new array.
"""


def selector_test(selector: NodeSelectorMatcher, nodes: NodeTable) -> Test:
    """Test nodes against all of a selector: its labels, and one of its terms where it has terms."""
    tests = [label_test(one, nodes) for one in selector.labels.requirements or ()]
    if selector.labels.selects_nothing:
        tests.append(_constant(nodes, holds=False))
    if selector.terms is not None:
        tests.append(_any_of([term_test(term, nodes) for term in selector.terms], nodes))
    return _all_of(tests, nodes)


def term_test(term: NodeTerm, nodes: NodeTable) -> Test:
    """Test nodes against every requirement of a term."""
    labels = [label_test(one, nodes) for one in term.labels]
    return _all_of([*labels, *(field_test(one, nodes) for one in term.fields)], nodes)


def label_test(one: LabelRequirement, nodes: NodeTable) -> Test:
    """Test one label."""
    key = one.key
    match one.operator:
        case Operator.EXISTS:
            return lambda rows: nodes.labels(key)[rows] >= 0
        case Operator.DOES_NOT_EXIST:
            return lambda rows: nodes.labels(key)[rows] < 0
        case Operator.IN if len(one.values) == 1:
            code = nodes.strings.code(one.values[0])
            return lambda rows: nodes.labels(key)[rows] == code
    verdicts = Verdicts[str](nodes.strings, one.admits, missing=one.admits(None))
    return lambda rows: verdicts.of(nodes.labels(key)[rows]) != 0


def field_test(one: FieldRequirement, nodes: NodeTable) -> Test:
    """Test one field; all but the name are empty on every node."""
    if one.key != NAME_FIELD:
        return _constant(nodes, holds=one.admits(""))
    code = nodes.strings.code(one.value)
    if one.negated:
        return lambda rows: nodes.name.data[rows] != code
    return lambda rows: nodes.name.data[rows] == code


def _constant(nodes: NodeTable, *, holds: bool) -> Test:
    return lambda rows: np.full(row_count(nodes, rows), holds)


def _all_of(tests: Iterable[Test], nodes: NodeTable) -> Test:
    first, *others = [*tests] or [_constant(nodes, holds=True)]

    def test(rows: Rows) -> Mask:
        mask = first(rows)
        for other in others:
            mask &= other(rows)
        return mask

    return test


def _any_of(tests: Iterable[Test], nodes: NodeTable) -> Test:
    first, *others = [*tests] or [_constant(nodes, holds=False)]

    def test(rows: Rows) -> Mask:
        mask = first(rows)
        for other in others:
            mask |= other(rows)
        return mask

    return test
