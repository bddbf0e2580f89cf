from __future__ import annotations

import errno
import io
import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Write
from tests.cli.processes import COMMAND, SECONDS, environment, on_a_terminal

HEAD = "apiVersion: policysched.io/v1beta1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n"
OLD = f'{HEAD}  # the condition\n  appliesTo: pod.name=="a"&&true # why\n'
NEW = f'{HEAD}  # the condition\n  appliesTo: pod.name == "a" and true # why\n'
BAD = f"{HEAD}  appliesTo: pod.name = 5\n"
DIFF = (
    "--- p.yaml\n"
    "+++ p.yaml\n"
    "@@ -3,4 +3,4 @@\n"
    " metadata: {name: p}\n"
    " spec:\n"
    "   # the condition\n"
    '-  appliesTo: pod.name=="a"&&true # why\n'
    '+  appliesTo: pod.name == "a" and true # why\n'
)


def _applied(data: bytes, diff: bytes) -> bytes:
    """Apply a diff of one part as `patch` does."""
    _, _, head, *lines = diff.removesuffix(b"\n").split(b"\n")
    first = int(head.split(b",")[0].removeprefix(b"@@ -")) - 1
    old, new = [], []
    for line, following in zip(lines, [*lines[1:], b""], strict=True):
        text = line[1:] + (b"" if following.startswith(b"\\") else b"\n")
        old += [text] if line[:1] in (b" ", b"-") else []
        new += [text] if line[:1] in (b" ", b"+") else []
    kept = data.splitlines(keepends=True)
    assert kept[first : first + len(old)] == old
    return b"".join([*kept[:first], *new, *kept[first + len(old) :]])


def test_fmt_writes_what_changed_and_says_so(command: Command, write: Write, tmp_path: Path) -> None:
    write("p.yaml", OLD)
    write("q.yaml", NEW)
    done = command("fmt", "p.yaml", "q.yaml")
    assert (done.code, done.problem) == (0, "")
    assert done.out == "reformatted p.yaml (1 expression)\n1 file reformatted, 1 file unchanged\n"
    assert (tmp_path / "p.yaml").read_text("utf-8") == NEW
    again = command("fmt", "p.yaml", "q.yaml")
    assert (again.code, again.out, again.problem) == (0, "2 files unchanged\n", "")


def test_fmt_does_not_write_a_file_that_stays(command: Command, write: Write, tmp_path: Path) -> None:
    write("p.yaml", NEW)
    before = (tmp_path / "p.yaml").stat()
    assert command("fmt", "p.yaml").code == 0
    after = (tmp_path / "p.yaml").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_check_lists_the_files_that_would_change_and_changes_none(
    command: Command, write: Write, tmp_path: Path
) -> None:
    write("p.yaml", OLD)
    write("q.yaml", NEW)
    done = command("fmt", "--check", ".")
    assert (done.code, done.problem) == (1, "")
    assert done.out == "would reformat p.yaml (1 expression)\n1 file would be reformatted, 1 file is formatted\n"
    assert (tmp_path / "p.yaml").read_text("utf-8") == OLD
    assert command("fmt", "--check", "q.yaml").code == 0


def test_diff_prints_a_unified_diff_and_nothing_else_on_stdout(command: Command, write: Write, tmp_path: Path) -> None:
    done = command("fmt", "--diff", write("p.yaml", OLD))
    assert (done.code, done.out) == (0, DIFF)
    assert done.problem == "would reformat p.yaml (1 expression)\n1 file would be reformatted\n"
    assert (tmp_path / "p.yaml").read_text("utf-8") == OLD
    assert command("fmt", "--diff", "--check", "p.yaml").code == 1


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_diff_can_be_applied(command: Command, tmp_path: Path, end: str, last: str, mark: str) -> None:
    old, new = ((mark + text.rstrip("\n") + last).replace("\n", end).encode() for text in (OLD, NEW))
    (tmp_path / "p.yaml").write_bytes(old)
    done = command("fmt", "--diff", "p.yaml")
    assert ("\\ No newline at end of file" in done.out) == (not last)
    assert _applied(old, done.out.encode()) == new


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_file_keeps_its_byte_order_mark_and_line_ends(
    command: Command, tmp_path: Path, end: str, last: str, mark: str
) -> None:
    old, new = ((mark + text.rstrip("\n") + last).replace("\n", end).encode() for text in (OLD, NEW))
    (tmp_path / "p.yaml").write_bytes(old)
    assert command("fmt", "p.yaml").code == 0
    assert (tmp_path / "p.yaml").read_bytes() == new


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(command: Command, write: Write, tmp_path: Path) -> None:
    write("p.yaml", OLD)
    (tmp_path / "p.yaml").chmod(0o640)
    (tmp_path / "link.yaml").symlink_to("p.yaml")
    assert command("fmt", "link.yaml").code == 0
    assert (tmp_path / "link.yaml").is_symlink()
    assert (tmp_path / "p.yaml").read_text("utf-8") == NEW
    assert stat.S_IMODE((tmp_path / "p.yaml").stat().st_mode) == 0o640


@pytest.mark.parametrize(("arguments", "out"), [((), NEW), (("--check",), ""), (("--diff",), DIFF)])
def test_stdin_is_formatted_to_stdout(
    command: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], out: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(OLD.encode())))
    done = command("fmt", "-", *arguments)
    assert done.out == out.replace("p.yaml", "<stdin>")
    assert done.problem.splitlines()[0].endswith("<stdin> (1 expression)")
    assert done.code == int("--check" in arguments)


@pytest.mark.parametrize("text", [NEW, BAD, "", "kind: Pod", "no policy: ["])
def test_stdin_comes_out_whole_where_nothing_changes(
    command: Command, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    done = command("fmt", "-")
    assert (done.code, done.out) == (int(text == BAD), text)


def test_mistakes_are_shown_as_check_does_and_the_rest_is_formatted(
    command: Command, write: Write, tmp_path: Path
) -> None:
    write("bad.yaml", f"{BAD}---\n{OLD}")
    write("p.yaml", OLD)
    done = command("fmt", "bad.yaml", "p.yaml")
    assert done.code == 1
    checked = command("check", write("only.yaml", BAD)).out
    assert done.problem == checked.rpartition("1 policy")[0].replace("only.yaml", "bad.yaml")
    assert done.out.splitlines()[-1] == "2 files reformatted, 1 file with errors"
    assert (tmp_path / "bad.yaml").read_text("utf-8") == f"{BAD}---\n{NEW}"
    assert (tmp_path / "p.yaml").read_text("utf-8") == NEW


UNUSABLE = [
    ("none.yaml", None, "none.yaml: no such file"),
    ("", None, '"": no such file'),
    ("below", None, "below: no .yaml, .yml or .json file in the folder"),
    ("a.yaml", b"\x7fELF SchedulingPolicy \xff", "a.yaml: not UTF-8 text"),
    ("a.yaml", b"SchedulingPolicy \x00", "a.yaml: not a text file"),
    ("a.yaml", f"{HEAD}\tappliesTo: a\n".encode(), "a.yaml:5:1: not valid YAML: found character that cannot start"),
    ("a.yaml", f"{HEAD}  weight: 1\n  weight: 2\n".encode(), 'a.yaml:6:3: duplicate key "weight"'),
    ("a.json", b'{"kind": "SchedulingPolicy",}', "a.json:1:29: not valid JSON: "),
    (
        "a.json",
        b'{"kind": "SchedulingPolicy", "x": "\\ud800"}',
        "a.json: not valid JSON: \\ud800 is an incomplete surrogate pair",
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), UNUSABLE)
def test_a_file_that_cannot_be_used_is_named_and_others_are_formatted(
    command: Command, write: Write, tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    (tmp_path / "below").mkdir()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    write("p.yaml", OLD)
    done = command("fmt", name, "p.yaml")
    assert done.problem.startswith(f"error: {message}")
    assert done.problem.count("\n") == 1
    assert done.out == "reformatted p.yaml (1 expression)\n1 file reformatted, 1 file failed\n"
    assert done.code == 2
    assert content is None or (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize("fails", ["open", "mkstemp", "fsync", "replace"])
def test_a_file_that_cannot_be_written_stays_whole(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    owner = {"open": Path, "mkstemp": tempfile, "fsync": os, "replace": Path}[fails]
    before = getattr(owner, fails)

    def fail(*given: object, **named: object) -> object:
        if fails == "open" and "r+b" not in given:
            return before(*given, **named)
        raise OSError(errno.EACCES, "Permission denied")

    write("p.yaml", OLD)
    with monkeypatch.context() as patched:
        patched.setattr(owner, fails, fail)
        done = command("fmt", "p.yaml")
    assert (done.code, done.out) == (2, "1 file failed\n")
    assert done.problem == "error: p.yaml: cannot write: permission denied\n"
    assert (tmp_path / "p.yaml").read_text("utf-8") == OLD
    assert [one.name for one in tmp_path.iterdir()] == ["p.yaml"]


def test_a_file_of_somebody_else_is_formatted_all_the_same(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)
    assert command("fmt", write("p.yaml", OLD)).code == 0
    assert (tmp_path / "p.yaml").read_text("utf-8") == NEW


def test_what_is_no_regular_file_is_not_replaced(command: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    writer = subprocess.Popen(["bash", "-c", "cat > pipe.yaml"], stdin=subprocess.PIPE, cwd=tmp_path)
    assert writer.stdin is not None
    writer.stdin.write(OLD.encode())
    writer.stdin.close()
    done = command("fmt", "pipe.yaml")
    assert writer.wait(SECONDS) == 0
    assert (done.code, done.problem) == (2, "error: pipe.yaml: cannot write: not a regular file\n")
    assert stat.S_ISFIFO((tmp_path / "pipe.yaml").stat().st_mode)


def test_diff_is_coloured_on_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(OLD, "utf-8")
    process = [*COMMAND, "fmt", "--diff", str(path)]
    plain = subprocess.run(process, capture_output=True, env=environment(), timeout=SECONDS, check=True).stdout
    assert b"\x1b" not in plain
    said = on_a_terminal("fmt", "--diff", str(path), problem=None)
    assert re.search(r"\x1b\[32m\+  appliesTo", said)
    assert re.search(r"\x1b\[31m-  appliesTo", said)
    shown = re.sub(r"\x1b\[[0-9;]*m|\r", "", said)
    assert shown == plain.decode()


def test_a_name_that_is_no_text_is_no_reason_to_fail(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff.yaml"
    Path(os.fsdecode(name)).write_text(OLD, "utf-8")
    done = subprocess.run([*COMMAND, "fmt", name], capture_output=True, env=environment(), timeout=SECONDS, check=True)
    assert done.stdout.startswith(b"reformatted ")
    assert done.stderr == b""
