"""YAML read by events: what it takes it reads as the reader that keeps places does, and it takes the usual."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from policysched.errors import UsageError
from policysched.reading.yaml_nodes import read_yaml
from policysched.reading.yaml_values import NotPlainError, read_events
from tests.laws.examples import examples

LIST = """\
# saved on a Monday
apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    annotations:
      config: |
        key: value
          - deeper

        # no comment
      empty: ""
      json: '{"a":["it''s"]}'
      "true": "a\\tb"
      '1': 1.5
    finalizers:
    - a
    - b: c
      d:
      - - 1
        - x: []
          y: {}
      - "2"
    labels: {}
    name: n1
  status:
    conditions:
    - message: 'The node was low on resource: memory. Container x was using 10Gi,
        which exceeds its request of 0. '
      reason: Evicted
    - message: a plain text that does not
        fit into one line (it's), #1
      type: Ready
    - message: "with \\"escapes\\"\\
        \\ and more"
    images:
      - names: [a, b]
        sizeBytes: 0x10   # many

      - names:
          - http://x:80/y?z
          - -1
          - --flag=a b
        sizeBytes: 1_000
- kind: Pod
  metadata:
    creationTimestamp: null
    managedFields:
    - fieldsV1:
        f:metadata:
          k:{"uid":"a"}:
            .: {}
  spec: {containers: [], priority: 010}
kind: List
metadata:
  resourceVersion: ""
---
---
kind: ConfigMap
data:
  a: |-
   one
  b: >+
    folded

    text

---
- 1
- [2]
- 'a': b
"""


def exact(text: str) -> list[Any]:
    return [value for value, _ in read_yaml(text, "f")]


def events(text: str) -> list[Any] | None:
    try:
        return list(read_events(text, lambda item: item))
    except NotPlainError:
        return None


def test_what_kubectl_prints_is_taken() -> None:
    found = events(LIST)
    assert found == exact(LIST)
    assert found[0]["items"][0]["status"]["images"][1]["names"] == ["http://x:80/y?z", -1, "--flag=a b"]


def test_items_are_shrunk_as_they_end() -> None:
    [found] = read_events("items:\n- a: {b: 1}\n  c: {}\n- d: [{e: 1}]\n- {f: 1}\nx:\n  y: {}\n", sorted)
    assert found == {"items": [["a", "c"], ["d"], ["f"]], "x": {"y": {}}}


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n", "a:\n  b: 1\n  b: |\n    x\n", '"a": 1\na: 2\n', "a: &x 1\nb: *x\n", "a: !!str 1\n",
        "<<: {a: 1}\n", '"<<": 1\n', "? a\n: b\n", "a:\n\t- b\n", "a:\n    b: 1\n  c: 2\n", "a: 1\n  b: 2\n",
        "a: 1\n- b\n", "- a\nb: 1\n", "a: 1\nb\n", "a:\n  b\n", "a: b: c\n", "a: 'x\n", "a: {b?: c}\n", "a: 0b_\n",
        f"a: {'9' * 5000}\n", "--- a\n", "...\n", "%YAML 1.1\n---\na: 1\n", "a: \x85b\n", "a: b\u2028c\n",
        "a: \ufeffb\n", "a: \x07\n", "a: 1", "x" * 1100 + ": 1\n", "- " * 300 + "a\n",
        "".join(f"{' ' * n}a:\n" for n in range(300)), "@a: 1\n", "a: `b`\n", "-\n  a\n", "a: |\n b\nc\n",
        "- a\n b: c\n", "a: 'b'\n  c\n", "a: []\n  b: 1\n", "a: x\n\n  y\n", "text\n",
    ],
)  # fmt: skip
def test_strange_texts_are_read_as_by_the_other_reader_or_left_to_it(text: str) -> None:
    same(text)


TEXTS = st.text(max_size=40) | st.sampled_from(
    ["", "a b", "x: y", "two\nlines\n", "it's", "- a", "22:00", "yes", "a " * 50, "#", "a #b", "\u00e4", "|"]
)
KEYS = st.sampled_from(["a", "b", "1", "yes", "f:x", "k:{}", "a b"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda one: st.lists(one, max_size=3) | st.dictionaries(KEYS, one, max_size=3),
    max_leaves=12,
)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's own signature
        return True


@examples(300)
@given(
    st.dictionaries(st.sampled_from(["items", "kind", "x"]), JSON, min_size=1, max_size=3),
    st.sampled_from([20, 80, 1000]),
    st.sampled_from([None, "'", '"', "|", ">"]),
    st.sampled_from([2, 4]),
    st.booleans(),
)
def test_values_are_those_of_the_reader_with_places(
    value: Any, width: int, style: str | None, indent: int, unicode: bool
) -> None:
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        width=width,
        default_style=style,
        default_flow_style=False,
        indent=indent,
        allow_unicode=unicode,
    )
    same(text)


LINES = st.sampled_from([
    *LIST.splitlines(), "", " ", "#", "---", "...", "a:", "a: b", "a: 'b", "b'", '"a": b', "a: |", "a: >-", "a: |2",
    "- a", "-", "- ", "- - a", "a: &a b", "a: *a", "a: !b c", "? a", ": b", "<<: *a", "<<: {a: b}", "a: {b: c}",
    "a: [b,", "c]", "}", "a: b #c", "a : b", "a:b", "a: b: c", "a: -", "a: - b", "\ta: b", "a:\tb", "%YAML 1.1", "b",
    "a: ?", "a: ? b", "\x85", "\ufeff", "a: b\r", "'a: b", "- 'a': b", "- a : b", "-  a: b", "a:  b", "a: b ", "a: ",
    '- "a\\": b"', "key: |+", "  - x", "=: 1", "a: =", "a: <<",
])  # fmt: skip
EDITS = st.lists(
    st.tuples(
        st.integers(0, 90), st.sampled_from(["insert", "replace", "delete", "indent"]), LINES, st.integers(-3, 6)
    ),
    min_size=1,
    max_size=5,
)


@examples(500)
@given(EDITS, st.integers(0, 60), st.integers(1, 40))
def test_strange_lines_change_nothing_unnoticed(edits: list[tuple[int, str, str, int]], first: int, count: int) -> None:
    """Whatever is done to the lines of a file, it is read as by the other reader, or left to it."""
    lines = LIST.splitlines()[first : first + count]
    for place, edit, line, by in edits:
        at = place % (len(lines) or 1)
        match edit:
            case "insert":
                lines[at:at] = [" " * max(by, 0) + line]
            case "replace":
                lines[at : at + 1] = [" " * max(by, 0) + line]
            case "delete":
                del lines[at : at + 1]
            case _:
                lines[at : at + 1] = [" " * by + one if by > 0 else one[-by:] for one in lines[at : at + 1]]
    same("".join(f"{line}\n" for line in lines))


def same(text: str) -> None:
    found = events(text)
    if found is None:
        return
    try:
        wanted = exact(text)
    except UsageError as error:
        pytest.fail(f"{text!r} is taken, and refused by the other reader: {error}")
    assert repr(found) == repr(wanted)
