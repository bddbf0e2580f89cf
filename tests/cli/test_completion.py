from __future__ import annotations

import subprocess

import pytest

from policysched.language import message_table
from tests.cli.processes import COMMAND, SECONDS, environment


def _completed(line: str) -> list[str]:
    """What a bash offers behind a line."""
    words = line.split(" ")
    variables = environment(
        _POLICYSCHED_COMPLETE="complete_bash", COMP_WORDS=line.rstrip(), COMP_CWORD=str(len(words) - 1)
    )
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=variables, timeout=SECONDS, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("policysched exp", ["explain"]),
        ("policysched explain E03", [code for code in message_table() if code.startswith("E03")]),
        ("policysched explain w07", [code.lower() for code in message_table() if code.startswith("W07")]),
        ("policysched explain ", list(message_table())),
        ("policysched explain X", []),
        ("policysched explain -o ", ["table", "json"]),
        ("policysched check -o ", ["table", "json", "github"]),
        ("policysched check --warn", ["--warnings-as-errors"]),
        ("policysched fmt --", ["--check", "--diff", "--help"]),
    ],
)
def test_a_shell_offers_what_may_follow(line: str, offered: list[str]) -> None:
    assert _completed(line) == offered


def test_zsh_offers_codes_with_what_they_are_about() -> None:
    variables = environment(_POLICYSCHED_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="policysched explain E0304")
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=variables, timeout=SECONDS, check=True)
    assert '"E0304":"strings have no order"' in done.stdout
