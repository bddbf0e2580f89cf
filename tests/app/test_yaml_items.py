"""Nodes and pods in YAML, read by the outlines of their texts: what is taken is read as the reader with places does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysched.app.files.yaml_items import Items
from policysched.app.files.yaml_nodes import read_yaml
from policysched.app.files.yaml_values import read_blocks
from policysched.errors import UsageError
from policysched.model.objects import Node, Pod
from tests.app.test_yaml_values import EDITS, LIST
from tests.laws.examples import examples
from tests.work import calls


class Part(msgspec.Struct, frozen=True):
    a: str = ""
    parts: list[Part] = []
    named: dict[str, Part] = {}
    maybe: Part | None = None


class Shape(msgspec.Struct, frozen=True):
    whole: Any = None
    read: Part = Part()
    many: tuple[Part, ...] = ()


SHAPES = {"Node": Node, "Pod": Pod, "Shape": Shape}
POD = """\
- apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      config: |
        {name}: {"a": "b"}
    name: {name}
    managedFields:
    - fieldsV1:
        f:metadata:
          f:labels:
            .: {}
  spec:
    containers:
    - args:
      - --flag={name}
      - "- a: \\"b\\" # c"
      env:
      - name: A
        value: 'it''s: "{name}"'
      image: registry.example:5000/{name}:v1
      name: main
    nodeName: n-{name}
    nodeSelector: {}
    tolerations:
    - key: a
      operator: Exists
  status:
    conditions:
    - lastProbeTime: null
      message: 'a text
        of {name}'
      status: "True"
      type: Ready
    phase: Running
"""


def taken(text: str, column: int = 0, items: Items | None = None) -> Any:
    found = (items or Items(SHAPES)).take(text, column)
    return None if found is None else (found.kind, found.version, msgspec.json.decode(found.json))


def pod(name: str, indent: str = "") -> str:
    return "".join(f"{indent}{line}\n" for line in POD.replace("{name}", name).splitlines())


@pytest.mark.parametrize("indent", ["", "  "])
def test_what_is_read_of_a_pod_is_written_and_nothing_else(indent: str) -> None:
    items = Items(SHAPES)
    for name in ("a", "b?c", "yes"):
        kind, version, read = taken(pod(name, indent), len(indent), items)
        assert (kind, version) == ("Pod", "v1")
        value = True if name == "yes" else name
        assert read == {
            "metadata": {"annotations": {"config": f'{name}: {{"a": "b"}}\n'}, "name": value},
            "spec": {
                "containers": [{"image": f"registry.example:5000/{name}:v1", "name": "main"}],
                "nodeName": f"n-{name}",
                "nodeSelector": {},
                "tolerations": [{"key": "a", "operator": "Exists"}],
            },
            "status": {
                "conditions": [{"message": f"a text of {name}", "status": "True", "type": "Ready"}],
                "phase": "Running",
            },
        }


@pytest.mark.parametrize(
    ("written", "other"),
    [
        ("    name: main", "    name: main\n      name: main"),
        ("        f:metadata:", "        f:metadata: {}\n        f:metadata:"),
        ("      - name: A", "      - name: A\n        name: B"),
        ("        value: 'it", "        value: a\n        value: 'it"),
        ("    phase: Running", "    phase: Running\n  status:\n    phase: Running"),
        ("    conditions:", "    conditions: []\n    conditions:"),
        ("  kind: Pod", "  kind: Pod\n  kind: Pod"),
        ("      config: |", "      config: a\n      config: |"),
        ("    phase: Running", "    phase: Running\n    unread: &a b"),
        ("    phase: Running", "    phase: Running\n    unread: !b c"),
        ("    phase: Running", "    phase: Running\n    unread: 0x_"),
        ("    phase: Running", f"    phase: Running\n    unread: {'9' * 5000}"),
        ("    phase: Running", "    phase: Running\n    unread: 'a"),
        ("    phase: Running", "    phase: Running\n    unread: a: b"),
        ("    phase: Running", "    phase: Running\n    unread: {b?: c}"),
        ("    phase: Running", "    phase: Running\n    unread:\n      a: b\n     c: d"),
        ("    phase: Running", "    phase: Running\n    unread:\n    - a: b\n      - c"),
        ("    phase: Running", "    phase: Running\n      a: b"),
        ("    phase: Running", "    phase: 1e999"),
    ],
)
def test_what_is_wrong_is_left_to_others_even_where_nothing_is_read(written: str, other: str) -> None:
    text = pod("a")
    changed = text.replace(written, other, 1)
    assert changed != text
    items = Items(SHAPES)
    assert taken(text, items=items) is not None
    assert taken(changed, items=items) is taken(changed, items=items) is None


@pytest.mark.parametrize(
    "text", ["- kind: Other\n", "- name: a\n", "- kind: [Pod]\n", "- kind: 5\n", "- Pod\n", "- kind: |\n    Pod\n"]
)
def test_items_of_other_kinds_are_left_to_others(text: str) -> None:
    assert taken(text) is None


def test_a_kind_is_read_by_its_own_fields() -> None:
    items = Items(SHAPES)
    text = "- kind: {}\n  spec:\n    nodeName: n\n    taints:\n    - key: a\n"
    assert taken(text.format("Pod"), items=items)[2] == {"spec": {"nodeName": "n"}}
    assert taken(text.format("Node"), items=items)[2] == {"spec": {"taints": [{"key": "a"}]}}


LINES = [
    line for line in LIST[LIST.index("  kind: Node") : LIST.index("- kind: Pod")].splitlines() if line[:2] != "  k"
]


@examples(500)
@given(st.sampled_from(["whole", "read", "many", "other"]), EDITS, st.integers(0, 40), st.integers(1, 40))
def test_strange_lines_change_nothing_unnoticed(
    field: str, edits: list[tuple[int, str, str, int]], first: int, count: int
) -> None:
    lines = LINES[first : first + count]
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
    text = f"- kind: Shape\n  {field}:\n" + "".join(f"  {line}\n" for line in lines)
    items = Items(SHAPES)
    if "\0" in text or any(mark in text for mark in "\t\r\x85\ufeff"):
        # Only texts without these are given to it.
        return
    found = taken(text, items=items)
    assert found == taken(text, items=items)
    try:
        [([value], _)] = read_yaml(text, "f")
    except UsageError as error:
        assert found is None, error
        return
    if found is not None:
        assert read_of(found[2]) == read_of(value)
        assert repr(found[2].get("whole")) == repr(value.get("whole"))


def read_of(value: Any) -> Any:
    try:
        return msgspec.convert(value, Shape)
    except msgspec.ValidationError as error:
        return str(error)


def test_a_list_is_read_with_its_items_taken() -> None:
    def take(text: str, column: int) -> Any:
        return items.take(text, column)

    for indent in ("", "  "):
        items = Items(SHAPES)
        text = f"items:\n{indent}- kind: Pod\n{pod('a', indent)}{indent}- kind: Other\n{pod('b', indent)}kind: List\n"
        [found] = read_blocks(text, lambda item: item, take)
        assert [type(one) is dict for one in found["items"]] == [True, False, True, False]
        assert found["kind"] == "List"


def test_only_a_list_of_a_document_has_items_to_take() -> None:
    given: list[str] = []
    text = "items:\n- a: 1\n- b: 2\nx:\n  y:\n- c: 3\n---\n- d: 4\n- e: 5\n---\nz:\n- f: 6\n- g: 7\n"
    found = list(read_blocks(text.replace("x:\n  y:\n", ""), lambda item: item, lambda text, _: given.append(text)))
    assert found == list(read_blocks(text.replace("x:\n  y:\n", ""), lambda item: item))
    assert given == ["- b: 2\n", "- c: 3\n", "- g: 7\n"]


def test_an_outline_is_looked_through_once_and_its_parts_too() -> None:
    def images(counts: Iterable[int]) -> str:
        listed = "".join(
            "    - names: []\n" + "".join(f"      unread-{index}: a\n" for index in range(count)) for count in counts
        )
        return f"- kind: Node\n  status:\n    images:\n{listed}"

    def cost(counts: Iterable[int]) -> int:
        text = images(counts)
        return calls(lambda: items.take(text, 0))

    items = Items({"Node": Node})
    new = cost(range(20, 40))
    assert cost(range(20, 40)) < 40
    assert cost(range(39, 19, -1)) < new / 2


def test_what_is_known_has_an_end() -> None:
    items = Items({"Node": Node})
    for number in range(40):
        labels = "".join(f"      key-{number}-{index}: v\n" for index in range(20_000))
        assert items.take(f"- kind: Node\n  metadata:\n    labels:\n{labels}", 0) is not None
    assert items.known < 1 << 24


@pytest.mark.parametrize("key", ["apiVersion", "kind"])
@pytest.mark.parametrize(
    "written", ["{} # of others", "{} ", ">-\n    {}", "{}\n   ", '"{}" # of others', "&a {}", "!!str {}"]
)
def test_what_kind_an_item_is_of_is_taken_from_plain_texts_alone(key: str, written: str) -> None:
    plain = "- apiVersion: longhorn.io/v1\n  kind: Node\n  metadata:\n    name: n1\n"
    value = {"apiVersion": "longhorn.io/v1", "kind": "Node"}[key]
    other = plain.replace(f"{key}: {value}", f"{key}: {written.format(value)}")
    found = taken(other)
    assert found is None or found[:2] == ("Node", "longhorn.io/v1")
    assert taken(plain)[:2] == ("Node", "longhorn.io/v1")
