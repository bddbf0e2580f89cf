from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysched.model.objects import LabelSelector, Requirement
from policysched.model.selection.selectors import (
    EVERYTHING,
    FEW,
    NOTHING,
    SelectorCompiler,
    SelectorError,
    compile_selector,
    match_labels,
    requirement,
)
from tests import work


def selector(*expressions: tuple[str, str, list[str]], **labels: str) -> LabelSelector:
    raw: dict[str, Any] = {
        "matchLabels": labels,
        "matchExpressions": [
            {"key": key, "operator": operator, "values": values} for key, operator, values in expressions
        ],
    }
    return msgspec.convert(raw, LabelSelector)


MATCHES = [
    (selector(a="1"), {"a": "1", "b": "2"}, True),
    (selector(a="1"), {"a": "2"}, False),
    (selector(a="1"), {}, False),
    (selector(a=""), {}, False),
    (selector(a=""), {"a": ""}, True),
    (selector(a="1", b="2"), {"a": "1"}, False),
    (selector(("a", "In", ["1", "2"])), {"a": "2"}, True),
    (selector(("a", "In", ["1", "2"])), {"a": "3"}, False),
    (selector(("a", "In", ["1"])), {}, False),
    (selector(("a", "NotIn", ["1"])), {"a": "1"}, False),
    (selector(("a", "NotIn", ["1"])), {"a": "2"}, True),
    (selector(("a", "NotIn", ["1"])), {}, True),
    (selector(("a", "Exists", [])), {"a": ""}, True),
    (selector(("a", "Exists", [])), {"b": "1"}, False),
    (selector(("a", "DoesNotExist", [])), {"b": "1"}, True),
    (selector(("a", "DoesNotExist", [])), {"a": ""}, False),
    (selector(("b", "Exists", []), a="1"), {"a": "1"}, False),
    (selector(("b", "Exists", []), a="1"), {"a": "1", "b": ""}, True),
]


@pytest.mark.parametrize(("one", "labels", "expected"), MATCHES)
def test_selector_matches_labels(one: LabelSelector, labels: dict[str, str], expected: bool) -> None:
    assert compile_selector(one).matches(labels) is expected


def test_absent_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert compile_selector(None) == NOTHING
    assert NOTHING.selects_nothing
    assert not NOTHING.selects_everything
    assert not NOTHING.matches({})
    assert compile_selector(LabelSelector()) == EVERYTHING
    assert EVERYTHING.selects_everything
    assert not EVERYTHING.selects_nothing
    assert EVERYTHING.matches({})


@pytest.mark.parametrize(
    "one",
    [
        selector(("a", "Near", ["1"])),
        selector(("a", "in", ["1"])),
        selector(("a", "Gt", ["1"])),
        selector(("a", "Lt", ["1"])),
        selector(("a", "In", [])),
        selector(("a", "NotIn", [])),
        selector(("a", "Exists", ["1"])),
        selector(("a", "DoesNotExist", ["1"])),
        selector(("-a", "Exists", [])),
        selector(("", "Exists", [])),
        selector(("a", "In", ["not valid"])),
        selector(a="x" * 64),
    ],
)
def test_invalid_selector_is_refused(one: LabelSelector) -> None:
    with pytest.raises(SelectorError):
        compile_selector(one)


def test_selectors_of_the_same_meaning_are_equal() -> None:
    left = compile_selector(selector(("b", "In", ["2", "1", "2"]), ("c", "Exists", []), a="1"))
    right = compile_selector(selector(("c", "Exists", []), ("a", "In", ["1"]), ("b", "In", ["1", "2"])))
    assert left == right
    assert hash(left) == hash(right)
    assert left.keys == {"a", "b", "c"}


def test_compiler_compiles_equal_selectors_once_and_each_as_it_is_compiled_alone() -> None:
    compiler = SelectorCompiler()
    for one in (None, selector(), selector(a="1"), selector(a="2", b="1"), selector(("a", "In", ["1"]))):
        again = None if one is None else msgspec.structs.replace(one)
        assert compiler(one) is compiler(again)
        assert compiler(one) == compile_selector(one)
    for _ in range(2):
        with pytest.raises(SelectorError):
            compiler(selector(("a", "In", [])))


def test_narrowed_selector_demands_more_and_nothing_stays_nothing() -> None:
    narrowed = EVERYTHING.narrowed({"a": "1"})
    assert narrowed == match_labels({"a": "1"})
    assert NOTHING.narrowed({"a": "1"}) == NOTHING
    assert NOTHING.keys == frozenset()


def test_plain_map_of_labels_is_not_validated() -> None:
    assert match_labels({"not a key": "not a value!"}).matches({"not a key": "not a value!"})


@pytest.mark.parametrize(
    ("operator", "bound", "label", "expected"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Gt", "5", "+6", True),
        ("Gt", "5", "x", False),
        ("Gt", "5", "6.5", False),
        ("Gt", "5", "", False),
        ("Gt", "5", None, False),
        ("Gt", "5", "9223372036854775807", True),
        ("Gt", "5", "9223372036854775808", False),
        ("Gt", "5", "9" * 100, False),
        ("Gt", "5", "٦", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Lt", "5", None, False),
    ],
)
def test_comparison_reads_labels_as_integers(operator: str, bound: str, label: str | None, expected: bool) -> None:
    assert _requirement(operator, bound).admits(label) is expected


@pytest.mark.parametrize("values", [(), ("1", "2"), ("x",), ("1.5",), ("-5",), ("9223372036854775808",)])
@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_comparison_needs_one_integer(operator: str, values: tuple[str, ...]) -> None:
    with pytest.raises(SelectorError):
        _requirement(operator, *values)


def _requirement(operator: str, *values: str) -> Any:
    return requirement(Requirement(key="a", operator=operator, values=values))


KEYS, VALUES = st.sampled_from("abcde"), st.sampled_from(("", "1", "2", "3"))
SAID: st.SearchStrategy[tuple[str, str, list[str]]] = st.one_of(
    st.tuples(KEYS, st.sampled_from(("In", "NotIn")), st.lists(VALUES, min_size=1, max_size=3)),
    st.tuples(KEYS, st.sampled_from(("Exists", "DoesNotExist")), st.just([])),
    st.tuples(st.sampled_from(("x", "y", "z", "u", "v", "w")), st.just("NotIn"), st.lists(VALUES, min_size=1)),
)


@given(st.lists(SAID, min_size=FEW, max_size=3 * FEW), st.dictionaries(KEYS, VALUES))
def test_many_requirements_say_what_each_of_them_says(
    said: list[tuple[str, str, list[str]]], labels: dict[str, str]
) -> None:
    alone = (compile_selector(selector(one)) for one in said)
    assert compile_selector(selector(*said)).matches(labels) is all(one.matches(labels) for one in alone)


def test_object_is_asked_about_the_labels_that_it_has() -> None:
    def lines(size: int) -> int:
        absent = [(f"absent-{number}", "NotIn", ["x"]) for number in range(size)]
        own = [("app", "NotIn", [f"v{number}"]) for number in range(size)]
        matcher = compile_selector(selector(*absent, *own, ("app", "Exists", [])))
        assert matcher.matches({"app": "web"})
        return work.lines(lambda: [matcher.matches({"app": "web", "pod": str(number)}) for number in range(20)])

    assert lines(400) == lines(100)


def test_hash_of_many_requirements_is_found_once() -> None:
    def calls(size: int) -> int:
        matcher = compile_selector(selector(*((f"k{number}", "In", ["x"]) for number in range(size))))
        assert hash(matcher) == hash(compile_selector(selector(*((f"k{n}", "In", ["x"]) for n in range(size)))))
        return work.calls(lambda: [hash(matcher) for _ in range(20)])

    assert calls(400) == calls(100)
