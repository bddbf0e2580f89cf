"""Laws of the translation of conditions into node affinity: every node that passes is allowed, in exact sets alone."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from policysched.model.objects.pods import NodeSelector
from policysched.model.selection.name_validation import is_label_value, is_subdomain
from policysched.model.selection.node_selectors import node_selector
from policysched.rules.translation.conditions import Approximation, translate
from policysched.rules.translation.policy_filters import PodValues
from tests.language.frames import TableFrame
from tests.laws.evaluating import compiled, one_row
from tests.laws.examples import examples
from tests.strategies import WORDS, conditions
from tests.worlds import clusters

LABELS = {
    "topology.kubernetes.io/zone": "node.zone",
    "kubernetes.io/arch": "node.arch",
    **{key: f'node.labels["{key}"]' for key in ("x", "y", "a", "b", "ab")},
}
STRINGS = (
    "node.name",
    "node.zone",
    "node.arch",
    'node.labels["x"]',
    'node.labels["y"]',
    'node.labels[pod.labels["x"]]',
)
TEXTS = ('"a"', '"b"', '"3"', '""', '"ab"', '"not valid!"', 'pod.labels["x"]', 'pod.annotations["x"]', "pod.name")


def comparisons() -> st.SearchStrategy[str]:
    """Comparisons that a node selector has."""
    label, text = st.sampled_from(STRINGS), st.sampled_from(TEXTS)
    read = st.one_of(label, st.tuples(label, text).map(lambda parts: f"({parts[0]} ?? {parts[1]})"))
    listed = st.lists(st.sampled_from(TEXTS[:6]), min_size=1, max_size=3, unique=True).map(", ".join)
    return st.one_of(
        st.tuples(read, st.sampled_from(("==", "!=")), text).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(text, st.sampled_from(("==", "!=")), read).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(read, st.sampled_from(("in", "not in")), listed).map(lambda one: f"({one[0]} {one[1]} [{one[2]}])"),
        label.map(lambda one: f"has({one})"),
        st.sampled_from(('pod.tolerations.has("x")', "(pod.priority > 2)", "true", "false")),
    )


def of_comparisons(depth: int = 3) -> st.SearchStrategy[str]:
    """Conditions of such comparisons."""
    if not depth:
        return comparisons()
    part = of_comparisons(depth - 1)
    return st.one_of(
        part,
        st.tuples(part, st.sampled_from((" and ", " or ")), part).map(lambda parts: f"({''.join(parts)})"),
        part.map(lambda one: f"not {one}"),
        st.tuples(part, part, part).map(lambda parts: f"if({', '.join(parts)})"),
    )


def allowed_by(found: Approximation, name: str, labels: dict[str, str]) -> bool:
    terms = found.nodes.selector_terms()
    return found.nodes.is_everything or node_selector(NodeSelector(node_selector_terms=terms)).matches(name, labels)


def judged(text: str, frame: TableFrame) -> list[tuple[bool, bool, Approximation]]:
    """Return for each possible node whether the condition is true, whether the affinity allows it, and the set."""
    assume(frame.rows)
    program = compiled(text)
    found = translate(program.root, PodValues(frame.at(0), is_named=True))
    judged = []
    for row, values in enumerate(frame.table):
        labels: dict[str, Any] = {key: values[path] for key, path in LABELS.items() if values[path] is not None}
        if is_subdomain(values["node.name"]) and all(map(is_label_value, labels.values())):
            passes = one_row(program, frame, row) is True
            judged.append((passes, allowed_by(found, values["node.name"], labels), found))
    return judged


@examples(150)
@given(conditions(3), clusters())
def test_every_node_that_passes_is_allowed(text: str, frame: TableFrame) -> None:
    for passes, allowed, found in judged(text, frame):
        assert allowed or not passes
        assert allowed == passes or not found.is_exact


@examples(150)
@given(of_comparisons(), clusters())
def test_conditions_of_labels_and_names_are_exact(text: str, frame: TableFrame) -> None:
    for passes, allowed, found in judged(text, frame):
        assert found.is_exact
        assert allowed == passes


def test_words_have_valid_and_invalid_values() -> None:
    assert {is_label_value(word) for word in WORDS} == {True, False}
