"""docs/reference/commands.md has every command and every flag. tests/pages compares it with its maker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from policysched.cli import make_app
from tools.documents.markdown import ROOT, codes

COMMANDS: dict[str, Any] = get_command(make_app()).commands  # type: ignore[attr-defined]
DOCUMENT = ROOT / "docs" / "reference" / "commands.md"


def commands() -> Iterator[tuple[str, Any]]:
    """Give every command that is no group, with the words that name it."""
    for name, command in COMMANDS.items():
        of_group: dict[str, Any] = getattr(command, "commands", {})
        yield from ((f"{name} {own}", one) for own, one in of_group.items()) if of_group else [(name, command)]


def test_every_command_is_in_the_table() -> None:
    first = DOCUMENT.read_text("utf-8").split("\n## ")[0]
    rows = [line.split("|") for line in first.splitlines() if line.startswith("| [`")]
    assert {codes(row[1])[0].removeprefix("policysched ") for row in rows} == {name for name, _ in commands()}
    assert {codes(row[1])[0].split()[1] for row in rows} == set(COMMANDS)


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=[name for name, _ in commands()])
def test_every_flag_is_in_the_section_of_its_command(name: str, command: Any) -> None:
    _, _, rest = DOCUMENT.read_text("utf-8").partition(f"\n### policysched {name}\n")
    section = re.split(r"\n###? ", rest)[0]
    options = [one.opts for one in command.params if one.param_type_name == "option"]
    flags = {next(one for one in names if one.startswith("--")) for names in options}
    rows = re.findall(r"^\| `(--[a-z0-9-]+)`", section, re.MULTILINE)
    assert (set(rows), len(rows)) == (flags, len(flags))
