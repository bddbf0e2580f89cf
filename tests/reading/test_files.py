"""Reading files of objects: what YAML and JSON come to, and how everything else is refused."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from policysched.errors import UsageError
from policysched.reading import files
from policysched.reading.bounded_yaml import MAX_DEPTH
from policysched.reading.documents import read
from policysched.reading.loading import load
from policysched.reading.yaml_nodes import DROPPED

TRAP = '; quote a text that starts with ", [ or ! or contains ": " or " #", or write it as a block scalar'
WHOLE = "put the whole text in '…' and write strings in it as \"ssd\""


def _objects(text: str, file: str = "f.yaml") -> list[object]:
    return [one.object for one in read(text, file)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: A", [{"kind": "A"}]),
        ("---\n# nothing\n---\nkind: A\n---\nkind: B\n", [{"kind": "A"}, {"kind": "B"}]),
        ("\ufeffkind: A".removeprefix("\ufeff"), [{"kind": "A"}]),
        ('{"kind": "A"}', [{"kind": "A"}]),
        ('{"kind": "A"}\n {"kind": "B"}', [{"kind": "A"}, {"kind": "B"}]),
        ("{kind: A}", [{"kind": "A"}]),
        ("kind: List\nitems:\n- kind: A\n- kind: B", [{"kind": "A"}, {"kind": "B"}]),
        ("kind: List\nitems:\n- kind: List\n  items: [{kind: A}]", [{"kind": "A"}]),
        (
            "kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: x}",
            [{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}}],
        ),
        ("kind: A\nx: &x {a: 1}\ny:\n  <<: *x\n  b: 2", [{"kind": "A", "x": {"a": 1}, "y": {"a": 1, "b": 2}}]),
    ],
)
def test_read_gives_every_object(text: str, expected: list[object]) -> None:
    assert _objects(text) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("22:00", "22:00"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("1e3", 1000.0),
        ("0644", 420),
        ("yes", True),
        ("off", False),
        ("~", None),
        ("", None),
        ("-5", -5),
        ("0.5", 0.5),
        ('"1"', "1"),
        ("1.5Gi", "1.5Gi"),
    ],
)
def test_read_takes_plain_scalars_as_kubernetes_does(text: str, value: object) -> None:
    assert _objects(f"kind: A\nx: {text}") == [{"kind": "A", "x": value}]


def test_read_keeps_keys_as_written() -> None:
    assert _objects("kind: A\n1: a\ntrue: b\n1.0: c") == [{"kind": "A", "1": "a", "true": "b", "1.0": "c"}]


INDENT = "; check the indentation of this line"
BAD = [
    ("kind: A\nmetadata:\n  name: x\n spec: {}", f"f.yaml:4:2: not valid YAML: did not find expected key{INDENT}"),
    (
        "kind: A\nx:\n- a: 1\n   b: 2",
        f"f.yaml:4:5: not valid YAML: mapping values are not allowed in this context{INDENT}",
    ),
    (
        "kind: A\nx:\n  a: x\n    b: {}",
        f"f.yaml:4:6: not valid YAML: mapping values are not allowed in this context{INDENT}",
    ),
    ("", "f.yaml: no objects"),
    ("# only this\n---\n", "f.yaml: no objects"),
    ("foo", "f.yaml:1:1: expected an object, got a text"),
    ("kind: A\n---\n- b", "f.yaml:3:1: expected an object, got a list"),
    ("3", "f.yaml:1:1: expected an object, got a number"),
    ("a: 1", "f.yaml:1:1: object has no kind"),
    ("kind: 3", "f.yaml:1:1: object has no kind"),
    ("kind: List\nitems: 3", "f.yaml:1:1: items: expected a list, got a number"),
    ("kind: List\nitems:\n- kind: A\n-", "f.yaml:4:2: expected an object, got nothing"),
    ("kind: A\nkind: B", 'f.yaml:2:1: duplicate key "kind"'),
    ("kind: A\nb: {c: 1, c: 2}", 'f.yaml:2:11: duplicate key "c"'),
    ('{"kind": "A", "kind": "B"}', 'f.yaml:1:15: duplicate key "kind"'),
    ('{"kind": "A",\n\t"b": [{"c": 1,\n\t"d": {"e": 1, "e": 2}}]}', 'f.yaml:3:16: duplicate key "e"'),
    (
        '{"kind": "A"}\n{"kind": "List", "items": [{"kind": "B", "kind": "B"}]}',
        'f.yaml:2:42: duplicate key "kind"',
    ),
    ('{"kind": "A", "b": {"c": 1, "c": 2}, d: 3}', 'f.yaml:1:29: duplicate key "c"'),
    ("? [1]\n: 2", "f.yaml:1:3: key is not a text"),
    ("kind: A\nb: &x [*x]", "f.yaml:2:4: anchor refers to itself"),
    ("kind: A\nb: *x", "f.yaml:2:4: not valid YAML: found undefined alias"),
    ("a: b\n\tc: d", "f.yaml:2:1: not valid YAML: found a tab character that violates indentation"),
    (
        "a:\n\tb: c",
        "f.yaml:2:1: not valid YAML: found character that cannot start any token; "
        "YAML is indented with spaces, not tabs",
    ),
    ("a: 'x\n", "f.yaml:2:1: not valid YAML: found unexpected end of stream"),
    ("a: [1, 2\nb: 3\n", "f.yaml:2:2: not valid YAML: did not find expected ',' or ']'"),
    ("a:\n- b\n c: d", f"f.yaml:3:3: not valid YAML: mapping values are not allowed in this context{INDENT}"),
    ("a: \x07", "f.yaml: not a text file: control characters are not allowed"),
    ("[" * 300, f"f.yaml:1:{MAX_DEPTH + 1}: nested deeper than {MAX_DEPTH} levels"),
    ("[" * 900, f"f.yaml:1:{MAX_DEPTH + 1}: nested deeper than {MAX_DEPTH} levels"),
    ("- " * 100_000, f"f.yaml:1:{2 * MAX_DEPTH + 1}: nested deeper than {MAX_DEPTH} levels"),
    ("a: !!bool perhaps", "f.yaml: not valid YAML: value does not match its tag"),
    ("a: !!int ''", "f.yaml: not valid YAML: value does not match its tag"),
    ("a: !!timestamp x", "f.yaml: not valid YAML: value does not match its tag"),
    ("a:\n- !!binary //4=", "f.yaml:2:3: not valid YAML: value is not valid in JSON: !!binary"),
    ("a:\n  b: !!set {c}", "f.yaml:2:6: not valid YAML: value is not valid in JSON: !!set"),
    ("a: !!omap [{b: 1}]", "f.yaml:1:4: not valid YAML: value is not valid in JSON: !!omap"),
    ("a: !!pairs [{b: 1}]", "f.yaml:1:4: not valid YAML: value is not valid in JSON: !!pairs"),
    ("a: [!!float .inf]", "f.yaml:1:5: not valid YAML: value is not valid in JSON: !!float"),
    # what YAML makes of expressions that are not quoted
    ('require: "a" == node.name', f"f.yaml:1:14: not valid YAML: did not find expected key{TRAP}"),
    ('- "a" == node.name → 80', f"f.yaml:1:7: not valid YAML: did not find expected '-' indicator{TRAP}"),
    ('require: ["a"] == b', f"f.yaml:1:16: not valid YAML: did not find expected key{TRAP}"),
    (
        '- {name: a, require: node.labels["x"] == "y"}',
        "f.yaml:1:33: not valid YAML: did not find expected ',' or '}'; "
        "quote a text with brackets or commas inside { }",
    ),
    ("a: {b: 1", "f.yaml:2:1: not valid YAML: did not find expected ',' or '}'"),
    ("require: !has(node.zone)", f"f.yaml:1:10: not valid YAML: unknown tag '!has(node.zone)'{TRAP}"),
    ("require: ! node.cordoned", f"f.yaml:1:10: {DROPPED}"),
    ("cases: [! 'a']", f"f.yaml:1:9: {DROPPED}"),
    (
        "appliesTo: !(pod.priority > 3)",
        f"f.yaml:1:29: not valid YAML: did not find expected comment or line break{TRAP}",
    ),
    (
        'require: !has(node.labels["disk"])',
        f"f.yaml:1:26: not valid YAML: did not find expected whitespace or line break{TRAP}",
    ),
    (
        "require: 'node.labels['disk'] == 'ssd''",
        f"f.yaml:1:24: not valid YAML: did not find expected key; {WHOLE}",
    ),
    ("- 'a' == node.name", f"f.yaml:1:7: not valid YAML: did not find expected '-' indicator; {WHOLE}"),
    (
        'cases: [node.labels["a"] == "x" → 100, else → 0]',
        f"f.yaml:1:20: not valid YAML: did not find expected ',' or ']'; inside [ ], {WHOLE}",
    ),
    ("a: [b c", "f.yaml:2:1: not valid YAML: did not find expected ',' or ']'"),
    (
        'require: node.name == "x: y"',
        f"f.yaml:1:25: not valid YAML: mapping values are not allowed in this context{TRAP}",
    ),
]


def test_read_refuses_brackets_that_libyaml_ends_at_by_itself() -> None:
    with pytest.raises(UsageError, match=rf"^f.yaml:1:\d+: nested deeper than {MAX_DEPTH} levels$"):
        read("[" * 100_000, "f.yaml")


@pytest.mark.parametrize(("text", "message"), BAD)
def test_read_says_where_a_text_is_wrong(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(text, "f.yaml")
    assert str(caught.value) == message


def test_read_refuses_aliases_that_explode() -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
    for lines in (6, 7, 9):
        text = f"a0: &a0 [{', '.join('x' * 10)}]\n" + "".join(levels.splitlines(keepends=True)[:lines])
        with pytest.raises(UsageError, match=r"^f.yaml:\d+:5: aliases add more than 500000 values$"):
            read(text, "f.yaml")


@pytest.mark.parametrize("name", ["f.yaml", "f.json"])
def test_read_refuses_numbers_that_python_does_not_read(name: str) -> None:
    with pytest.raises(
        UsageError, match=r"^f\.(yaml|json): not valid (YAML|JSON): a number has more than 4300 digits$"
    ):
        read('{"kind": "Node", "x": ' + "9" * 1_000_000 + "}", name)


@pytest.mark.parametrize("written", ["0x" + "f" * 20_000, "-0o" + "7" * 20_000, "0b" + "1" * 20_000])
def test_read_refuses_numbers_that_python_does_not_write(written: str) -> None:
    with pytest.raises(UsageError, match=r"^f\.yaml: not valid YAML: a number has more than 4300 digits$"):
        read(f"kind: Node\nx: {written}\n", "f.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": }', "f.json:1:10: not valid JSON: expecting value"),
        ('{"kind": "A"\n"b": 1}', "f.json:2:1: not valid JSON: expecting ',' delimiter"),
        ('{"a":' * 5000, "f.json: nested too deeply"),
    ],
)
def test_read_explains_json_as_json(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(text, "f.json")
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["kind: A\nx: {a: b ?? c}", "kind: A\nx: [http://a?b]"])
def test_read_refuses_what_kubectl_would_not_read(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"^f\.yaml:2:\d: kubectl cannot read an unquoted text with \? inside { } or \[ \]"
    ):
        read(text, "f.yaml")


@pytest.mark.parametrize(
    "text", ['x: {a: "b ?? c"}', "x: b ?? c", "x: [a]\ny: b?c", "x:\n- a\n- b ?? c", "x: [{a: 'b?'}]"]
)
def test_read_takes_question_marks_elsewhere(text: str) -> None:
    assert read(f"kind: A\n{text}", "f.yaml")


def test_load_reads_folders_by_name_and_nothing_else(tmp_path: Path) -> None:
    for name, kind in (("b.yaml", "B"), ("a.json", "A"), ("c.yml", "C"), ("d.txt", "D")):
        (tmp_path / name).write_text(json.dumps({"kind": kind}), encoding="utf-8")
    (tmp_path / "below").mkdir()
    assert [one.object["kind"] for one in load([str(tmp_path)])] == ["A", "B", "C"]


def test_load_reads_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("kind: A\nx: ä".encode()), "ascii"))
    (document,) = load(["-"])
    assert (document.object, document.file) == ({"kind": "A", "x": "ä"}, "<stdin>")


def test_load_takes_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfkind: A\r\nx: |\r\n  a\r\n  b\r\n")
    assert load([str(path)])[0].object == {"kind": "A", "x": "a\nb\n"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x7fELF\x02\x01\x01\x00\xff\xfe", "{}: not UTF-8 text"),
        (b"kind: A\x00", "{}: not a text file"),
        (b"", "{}: no objects"),
    ],
)
def test_load_refuses_what_is_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load([str(path)])
    assert str(caught.value) == message.format(path)


def test_load_names_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml: no such file$"):
        load([str(tmp_path / "none.yaml")])
    with pytest.raises(UsageError, match=r": no \.yaml, \.yml or \.json file in the folder$"):
        load([str(tmp_path)])


def test_load_says_why_a_file_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("kind: A")
    with pytest.raises(UsageError, match=r"a/b: not a directory$"):
        load([str(tmp_path / "a" / "b")])

    def refuse(_: Path, mode: str) -> bytes:
        raise PermissionError

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UsageError, match=r"a: permission denied$"):
        load([str(tmp_path / "a")])


def test_the_documents_of_a_file_share_its_lines() -> None:
    first, second = read("kind: A\n---\nkind: B\n", "f.yaml")
    assert first.source.lines is second.source.lines
    assert first.source.starts is second.source.starts


def test_load_says_that_a_name_is_too_long() -> None:
    with pytest.raises(UsageError, match="file name too long"):
        load(["a" * 5000])


def test_load_reads_no_device_to_its_end() -> None:
    with pytest.raises(UsageError, match=r"^/dev/zero: not a text file$"):
        load(["/dev/zero"])


def test_load_refuses_files_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 3 << 20)
    large = tmp_path / "large.yaml"
    for size, refused in ((3 << 20, False), ((3 << 20) + 1, True)):
        large.write_bytes(b"#" * size)
        with pytest.raises(UsageError, match="larger than" if refused else "no objects"):
            load([str(large)])


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("!!timestamp 2026-01-01", "2026-01-01"),
        ("!!timestamp 2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01", "2026-01-01"),
        ("123e4567", "123e4567"),
        ("-1e999", "-1e999"),
        ("1e300", 1e300),
    ],
)
def test_dates_and_numbers_that_are_too_large_are_texts(written: str, value: object) -> None:
    [found] = read(f"kind: A\na: {written}\nb: [{written}]\n", "f.yaml")
    assert (found.object["a"], found.object["b"]) == (value, [value])
