"""Malformed and deeply nested JSON, read by its brackets."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysched.reading.lenient_json import Identity, elements, identity, is_deeper, members, shallow
from tests.work import calls

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=20,
)


def cut(value: Any, depth: int) -> Any:
    """What `shallow` does, by recursion; empty brackets are as shallow as null."""
    if not isinstance(value, dict | list) or not value:
        return value
    if depth == 0:
        return None
    if isinstance(value, dict):
        return {key: cut(item, depth - 1) for key, item in value.items()}
    return [cut(item, depth - 1) for item in value]


@given(JSON, st.integers(1, 5), st.sampled_from([None, 2]))
def test_shallow_cuts_what_is_deeper_and_nothing_else(value: Any, depth: int, indent: int | None) -> None:
    raw = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    assert json.loads(shallow(raw, depth)) == cut(value, depth)


@given(JSON, st.integers(1, 5))
def test_is_deeper_is_where_something_is_cut(value: Any, depth: int) -> None:
    assert is_deeper(json.dumps(value).encode(), depth) is (cut(value, depth) != value)


@given(JSON, st.sampled_from([None, 2]))
def test_members_and_elements_are_those_of_the_value(value: Any, indent: int | None) -> None:
    raw = json.dumps(value, indent=indent).encode()
    of = value if isinstance(value, dict) else {}
    assert {name: json.loads(one) for name, one in members(raw).items()} == of
    assert [json.loads(one) for one in elements(raw)] == (value if isinstance(value, list) else [])


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b'{"metadata":{"name":"a","namespace":"b","resourceVersion":"7","x":NaN}}', Identity("b", "a", "7")),
        (b'{"spec":[\xff],"metadata":{"name":"a","labels":{"a":1e400}}}', Identity("", "a")),
        (b'{"metadata":{"name":5,"namespace":"b"}}', Identity("b")),
        (b'{"metadata":{"name":"\\ud800","namespace":"b"}}', Identity("b")),
        (b'{"metadata":7}', Identity()),
        (b'{"metadata":{"name":"a"}', Identity()),
        (b"[1]", Identity()),
        (b"", Identity()),
    ],
)
def test_identity_is_what_can_be_read_of_it(raw: bytes, told: Identity) -> None:
    assert identity(raw) == told


@pytest.mark.parametrize("raw", [b"[", b'{"a":"x[,{}', b'{"a":1', b"]", b"}{", b'"', b"", b"{]}"])
def test_broken_texts_are_no_trouble(raw: bytes) -> None:
    shallow(raw)
    members(raw)
    elements(raw)


def test_work_grows_with_the_text_alone() -> None:
    def seconds(count: int) -> float:
        texts = (b'{"a":"' + b"x[,{" * count, b"[" * count, b'{"a":' * count + b"1" + b"}" * count, b'"' * count)
        begin = time.process_time()
        for text in texts:
            shallow(text)
            members(text)
        return time.process_time() - begin

    seconds(1000)
    assert seconds(64_000) < 40 * max(seconds(8000), 0.005)


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        (b'{"spec":[%b[]],"metadata":{"name":7}}', b"[],"),
        (b'{"metadata":{"name":[%b[]]}}', b"[],"),
        (b'{"metadata":{"resourceVersion":{%b"a":1}}}', b'"a":{},'),
    ],
)
def test_json_of_wrong_types_is_not_gone_through_mark_by_mark(text: bytes, repeated: bytes) -> None:
    short, long = (text % (repeated * (size // len(repeated))) for size in (150, 1_500_000))
    assert identity(long) == identity(short) == Identity()
    assert calls(lambda: identity(long)) == calls(lambda: identity(short))
