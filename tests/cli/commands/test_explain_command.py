from __future__ import annotations

import json
import re

import pytest

from policysched.language import code_table, message_table
from tests.cli.conftest import Command
from tests.cli.processes import on_a_terminal


@pytest.mark.parametrize("code", message_table())
def test_every_code_is_explained_in_lines_that_fit(command: Command, code: str) -> None:
    done = command("explain", code)
    assert (done.code, done.problem) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith(f"{code}  ")
    assert {"Example", "Write instead"} < set(lines)
    assert max(map(len, lines)) <= 120
    one = message_table()[code]
    said = " ".join(done.out.split())
    assert one.meaning in said
    assert one.reason in said
    assert all(f"  {line}" in lines for line in one.fix.splitlines())


@pytest.mark.parametrize("written", ["E0301", "e0301", "E301", "e301", "0301", "301", " 301 ", "E00301"])
def test_a_code_may_be_written_in_many_ways(command: Command, written: str) -> None:
    assert command("explain", written).out.startswith("E0301  different types or units\n")


def test_a_number_of_an_error_and_of_a_warning_are_both_found(command: Command) -> None:
    assert command("explain", "701").out.startswith("W0701  ")
    assert command("explain", "w701").out.startswith("W0701  ")
    assert command("explain", "e701").code == 2


@pytest.mark.parametrize(
    ("code", "hint"),
    [("E701", "did you mean W0701?"), ("E999", "run `policysched explain` to list all codes"),
     ("foo", "run `policysched explain` to list all codes")],
)  # fmt: skip
def test_of_an_unknown_code_only_the_other_letter_is_suggested(command: Command, code: str, hint: str) -> None:
    assert command("explain", code).problem == f'error: unknown code "{code}"; {hint}\n'


def test_without_a_code_all_are_listed(command: Command) -> None:
    done = command("explain")
    rows = dict(line.split("  ", 1) for line in done.out.splitlines())
    assert list(rows) == list(message_table())
    assert {code: rows[code] for code in code_table()} == {code: one.title for code, one in code_table().items()}
    assert [one["code"] for one in json.loads(command("explain", "-o", "json").out)["items"]] == list(message_table())


def test_json_has_everything_and_uncut(command: Command) -> None:
    done = command("explain", "E0107", "-o", "json")
    found = json.loads(done.out)
    names = ["code", "severity", "title", "meaning", "reason", "example", "says", "fix"]
    assert list(found) == ["apiVersion", "kind", *names]
    assert (found["code"], found["severity"]) == ("E0107", "error")
    assert found["example"] == message_table()["E0107"].example
    assert len(found["example"]) > 3000
    assert "…" in command("explain", "E0107").out
    assert json.loads(command("explain", "W0701", "-o", "json").out)["severity"] == "warning"


def test_a_terminal_gets_colours_and_lines_of_its_width() -> None:
    said = on_a_terminal("explain", "E0301")
    assert re.search(r"\x1b\[1;31mE0301\x1b\[0m", said)
    assert re.search(r"\x1b\[34m *filters\x1b\[0m:", said)
    plain = re.sub(r"\x1b\[[0-9;]*m|\r", "", said)
    assert max(len(line) for line in plain.splitlines() if " | " not in line) <= 80
    assert "\x1b[3" not in on_a_terminal("explain", "E0301", NO_COLOR="1")
