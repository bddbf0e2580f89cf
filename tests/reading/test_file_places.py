"""The place in a file that a character of a field stands at, however the file writes the field."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from policysched.reading.documents import Document, read

PLACES = """\
# a comment
kind: List
items:
- kind: A
  metadata:
    labels: {app.kubernetes.io/name: x}
  spec:
    plain: node.zone == 1   # why
    double: "has(\\"x\\") and \\u0041 b"
    single: 'it''s a test'
    literal: |
      first line
        second "x"
    folded: >-
      one two
      three four
    several: abc def
      ghi jkl
    wide: "😀 ä" # after
"""
LINES = PLACES.split("\n")


def _spelled(document: Document, field: str) -> str:
    """The characters of the file that a field's characters are said to be at, end included."""
    node = document.node(field)
    assert node is not None
    found = []
    for number, line in enumerate(node.value.split("\n"), 1):
        for column in range(1, len(line) + 2):
            place = document.place(field, number, column)
            assert place is not None
            found.append(LINES[place.line - 1][place.column - 1 : place.column] or "$")
    return "".join(found)


@pytest.mark.parametrize(
    ("field", "spelled"),
    [
        ("spec.plain", "node.zone == 1 "),
        ("spec.double", 'has(\\x\\) and \\ b"'),
        ("spec.single", "it's a test'"),
        ("spec.literal", 'first line$$$second "x"$$'),
        ("spec.folded", "one two$three four$"),
        ("spec.several", "abc def$ghi jkl$"),
        ("spec.wide", '😀 ä"'),
        ("metadata.labels.app.kubernetes.io/name", "x}"),
    ],
)
def test_place_finds_every_character_of_a_text(field: str, spelled: str) -> None:
    (document,) = read(PLACES, "f.yaml")
    assert _spelled(document, field) == spelled


@pytest.mark.parametrize(
    ("field", "place"),
    [("", (4, 3)), ("spec", (8, 5)), ("spec.none", (8, 5)), ("spec.none[3].x", (8, 5)), ("spec.plain", (8, 12))],
)
def test_place_of_what_is_not_there_is_the_nearest_around_it(field: str, place: tuple[int, int]) -> None:
    (document,) = read(PLACES, "f.yaml")
    assert document.place(field) == place
    assert document.where == "f.yaml:4:3"


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "A"}\n  {"kind": "B", "spec": {"filters": [{"require": "node.zone"}]}}',
        '{"kind": "A"}{"n": [1, -2.5e3, true, [], {}], "kind": "B", "spec": {"filters": [{"require": "node.zone"}]}}',
        '{"kind": "A"}\n{\n\t"kind": "B",\n\t"spec": {"filters": [{"require":\n\t"node.zone"}]}}',
    ],
)
def test_place_works_in_json(text: str) -> None:
    document = read(text, "f.json")[1]
    place = document.place("spec.filters[0].require", 1, 6)
    assert text.split("\n")[place.line - 1][place.column - 1 :].startswith("zone")
    assert document.exact("spec.filters[0].require") is not None
    assert document.exact("spec.filters[1].require") is None


@pytest.mark.parametrize("written", ["\U0001f600", "\\ud83d\\ude00", "\\/", "\\u00e4", "\\n"])
def test_place_in_json_counts_an_escape_as_what_it_stands_for(written: str) -> None:
    text = f'{{"kind": "A", "x": "{written}b"}}'
    (document,) = read(text, "f.json")
    assert document.where == "f.json:1:1"
    column = 1 if document.object["x"] == "\nb" else 2
    place = document.place("x", 3 - column, column)
    assert text[place.column - 1] == "b"


@example("0E0", None)
@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60),
    st.sampled_from(["|", ">", "'", '"', None]),
)
def test_place_stays_inside_the_file_and_on_the_character(text: str, style: str | None) -> None:
    source = yaml.dump({"kind": "A", "x": text}, default_style=style, width=20, allow_unicode=True)
    (document,) = read(source, "f.yaml")
    value = document.object["x"]
    if not isinstance(value, str):
        return  # PyYAML writes some texts plain that Kubernetes reads as numbers
    lines = document.source.lines
    for number, line in enumerate(value.split("\n"), 1):
        for column, character in enumerate(line, 1):
            place = document.place("x", number, column)
            assert place is not None
            shown = lines[place.line - 1][place.column - 1 : place.column]
            assert character.isspace() or shown in (character, "\\")
