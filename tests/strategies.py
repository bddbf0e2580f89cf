"""Hypothesis strategies: expressions of the policy language that compile, and clusters to run them on.

Expressions are made as text, by type, so that they pass the parser like a user's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.language.frames import TableFrame

WORDS = ("a", "b", "ab", "a-b", "", "3", "2.5", "-1", "cpu", "gpu", 'q"\\')
KEYS = ("x", "y")
Texts = st.SearchStrategy[str]


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


STRING_LEAVES = (
    *(quoted(word) for word in WORDS),
    "node.name",
    "node.zone",
    "node.arch",
    *(f'node.labels["{key}"]' for key in KEYS),
    'pod.labels["x"]',
    'pod.annotations["x"]',
    "pod.name",
)
SCALAR_STRINGS = ('"x"', '"a"', 'pod.labels["x"]', 'pod.annotations["x"]', 'concat(pod.name, "b")')
UNIT_LEAVES: Mapping[str, tuple[str, ...]] = {
    "number": ("0", "1", "2.5", "80%", "node.free.pods", "cluster.nodes", "pod.priority", 'node.free["gpu"]',
               'node.allocatable[pod.labels["x"]]', 'number(node.labels["x"])', 'number(pod.annotations["x"])'),
    "cpu": ("node.free.cpu", "node.requested.cpu", "pod.requests.cpu"),
    "bytes": ("1Ki", "node.free.memory", "node.cached_image_bytes", "pod.image_bytes"),
    "duration": ("5min", "90s", "1.5h"),
}  # fmt: skip
CONDITION_LEAVES = ("true", "false", "node.ready", "node.cordoned", 'node.taints.has("k")', "node.taints.has(pod.name)")


def _several(item: Texts, least: int = 1, most: int = 3) -> st.SearchStrategy[list[str]]:
    return st.lists(item, min_size=least, max_size=most)


def _join(separator: str, items: Texts, least: int = 2) -> Texts:
    return _several(items, least).map(lambda parts: "(" + separator.join(parts) + ")")


def _call(name: str, *arguments: Texts) -> Texts:
    return st.tuples(*arguments).map(lambda parts: f"{name}({', '.join(parts)})")


def _pattern() -> Texts:
    return st.text("ab*?-3", min_size=1, max_size=5).map(quoted)


@functools.cache
def strings(depth: int) -> Texts:
    leaves = st.sampled_from(STRING_LEAVES)
    if depth <= 0:
        return leaves
    inner, condition = strings(depth - 1), conditions(depth - 1)
    keyed = st.sampled_from(SCALAR_STRINGS).map(lambda key: f"node.labels[{key}]")
    concat = _several(inner).map(lambda parts: f"concat({', '.join(parts)})")
    chosen = _call("if", condition, inner, inner)
    return st.one_of(leaves, keyed, concat, _join(" ?? ", inner), chosen, _call("only", condition, inner))


@functools.cache
def quantities(unit: str, depth: int, *, normalized: bool = False) -> Texts:
    leaves = st.sampled_from(UNIT_LEAVES[unit])
    if depth <= 0:
        return leaves
    inner = quantities(unit, depth - 1, normalized=normalized)
    number, condition = quantities("number", depth - 1), conditions(depth - 1)
    made = [
        leaves,
        _join(" + ", inner),
        _join(" - ", inner),
        _join(" ?? ", inner),
        st.tuples(inner, number).map(lambda two: f"({two[0]} * {two[1]})"),
        st.tuples(inner, number).map(lambda two: f"({two[0]} / {two[1]})"),
        inner.map(lambda text: f"-{text}"),
        inner.map(lambda text: f"abs({text})"),
        _call("if", condition, inner, inner),
        _call("only", condition, inner),
        _several(inner).map(lambda parts: f"least({', '.join(parts)})"),
        _several(inner).map(lambda parts: f"greatest({', '.join(parts)})"),
        _call("clamp", inner, inner, inner),
    ]
    if unit == "number":
        made += _numbers(depth, normalized)
    return st.one_of(made)


def _numbers(depth: int, normalized: bool) -> list[Texts]:
    others = st.one_of([st.tuples(*[quantities(unit, depth - 1)] * 3) for unit in UNIT_LEAVES])
    made = [
        others.map(lambda three: f"({three[0]} / {three[1]})"),
        others.map(lambda three: f"scale({', '.join(three)})"),
        _call("round", quantities("number", depth - 1)),
        _call("number", strings(depth - 1)),
    ]
    if normalized:
        made.append(_call("normalize", quantities("number", depth - 1)))
    return made


@functools.cache
def _comparisons(depth: int) -> Texts:
    operators = st.sampled_from(("==", "!=", "<", "<=", ">", ">="))
    numbers = st.one_of(
        [st.tuples(quantities(unit, depth - 1), operators, quantities(unit, depth - 1)) for unit in UNIT_LEAVES]
    )
    texts = st.tuples(strings(depth - 1), st.sampled_from(("==", "!=")), strings(depth - 1))
    return st.one_of(numbers, texts).map(lambda three: f"({' '.join(three)})")


@functools.cache
def _memberships(depth: int) -> Texts:
    words = _several(st.sampled_from(WORDS).map(quoted), 1, 5).map(lambda items: f"[{', '.join(items)}]")
    split = st.sampled_from(SCALAR_STRINGS).map(lambda text: f'split({text}, "-")')
    numbers = _several(st.sampled_from(("0", "1", "-2.5", "500m", "2k")), 1, 5).map(lambda i: f"[{', '.join(i)}]")
    operators = st.sampled_from((" in ", " not in "))
    texts = st.tuples(strings(depth - 1), operators, st.one_of(words, split))
    values = st.tuples(quantities("number", depth - 1), operators, numbers)
    return st.one_of(texts, values).map(lambda three: f"({''.join(three)})")


@functools.cache
def conditions(depth: int) -> Texts:
    leaves = st.sampled_from(CONDITION_LEAVES)
    if depth <= 0:
        return leaves
    inner, text = conditions(depth - 1), strings(depth - 1)
    anything: list[Texts] = [text, inner, quantities("number", depth - 1)]
    return st.one_of(
        leaves,
        _comparisons(depth),
        _memberships(depth),
        inner.map(lambda operand: f"(not {operand})"),
        _join(" and ", inner),
        _join(" or ", inner),
        _join(" ?? ", inner),
        st.one_of(anything).map(lambda value: f"has({value})"),
        _call("starts_with", text, text),
        _call("ends_with", text, text),
        _call("contains", text, text),
        _call("glob", text, _pattern()),
        _call("if", inner, inner, inner),
        _call("only", inner, inner),
    )


@functools.cache
def expressions(depth: int = 3) -> Texts:
    """Expressions of any type but lists; some use `normalize`."""
    return st.one_of(
        conditions(depth),
        strings(depth),
        *(quantities(unit, depth, normalized=unit == "number") for unit in UNIT_LEAVES),
    )


_TEXT = st.sampled_from(WORDS)
_MAYBE = st.one_of(st.none(), _TEXT)
_COUNT = st.integers(-3, 5000).map(float)
_COUNTS = (
    "node.free.pods", "node.free.cpu", "node.requested.cpu", "node.free.memory", "node.cached_image_bytes",
    'node.free["gpu"]', "node.allocatable.cpu", 'node.allocatable["gpu"]',
)  # fmt: skip
_FLAGS = ("node.ready", "node.cordoned", 'node.taints.has("k")', 'node.taints.has("a")')
ROW: Mapping[str, st.SearchStrategy[Any]] = {
    "node.name": _TEXT,
    "node.zone": _MAYBE,
    "node.arch": _MAYBE,
    **{f'node.labels["{key}"]': _MAYBE for key in ("x", "y", "a", "b", "ab")},
    **dict.fromkeys(_COUNTS, _COUNT),
    **dict.fromkeys(_FLAGS, st.booleans()),
}
POD: Mapping[str, st.SearchStrategy[Any]] = {
    "pod.name": _TEXT,
    'pod.labels["x"]': _MAYBE,
    'pod.annotations["x"]': _MAYBE,
    **dict.fromkeys(("pod.requests.cpu", "pod.image_bytes", "pod.priority", "cluster.nodes"), _COUNT),
}


@st.composite
def clusters(draw: Callable[[Any], Any], most: int = 6) -> TableFrame:
    """A few nodes and a pod; some nodes are feasible."""
    rows = draw(st.lists(st.fixed_dictionaries(dict(ROW)), max_size=most))
    feasible = draw(st.one_of(st.none(), st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    frame = TableFrame(rows, draw(st.fixed_dictionaries(dict(POD))))
    if feasible is not None:
        frame.feasible = _mask(feasible)
    return frame


def _mask(values: list[bool]) -> Any:
    return np.array(values, np.bool_)
