"""docs/reference/commands.md names every command. What it shows is tested with the other pages, see tests/pages."""

from __future__ import annotations

from tests.meta.markdown import ROOT, codes
from tools.documents.checks import known_commands

DOCUMENT = ROOT / "docs" / "reference" / "commands.md"


def test_every_command_is_in_the_table() -> None:
    first = DOCUMENT.read_text("utf-8").split("\n## ")[0]
    rows = [line.split("|") for line in first.splitlines() if line.startswith("| `")]
    assert {codes(row[1])[0].removeprefix("policysched ") for row in rows} == set(known_commands())
