from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from policysched.language import message_table
from tests.cli.conftest import Command
from tests.cli.processes import COMMAND, SECONDS, environment

ELECTION = ("renew-deadline", "resource-lock", "resource-name", "resource-namespace", "retry-period")


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
        ("policysched why --kube-version ", ["auto", "1.36", "1.37", "1.38"]),
        ("policysched test --kube-version 1.37", ["1.37"]),
        ("policysched explain -o ", ["table", "wide", "json", "yaml"]),
        ("policysched check -o ", ["table", "json", "yaml", "markdown", "github", "sarif"]),
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


SCRIPT = """
source <("$@" completion bash)
COMP_WORDS=($WORDS) COMP_CWORD=$(( $(wc -w <<< "$WORDS") - 1 ))
_policysched_completion command
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("policysched run --leader-elect-re", [f"--leader-elect-{one}" for one in ELECTION]),
        ("policysched run --logging-format = j", ["json"]),
        ("policysched run --logging-format =", ["text", "json"]),
        ("policysched run --leader-elect = f", ["false"]),
        ("policysched completion z", ["zsh"]),
    ],
)
def test_bash_completes_with_the_script(tmp_path: Path, words: str, offered: list[str]) -> None:
    command = tmp_path / "command"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    command.chmod(0o755)
    variables = environment(WORDS=words, PATH=f"{tmp_path}:{os.environ['PATH']}")
    done = subprocess.run(
        ["bash", "-c", SCRIPT, "bash", *COMMAND],
        capture_output=True,
        text=True,
        env=variables,
        timeout=SECONDS,
        check=True,
    )
    assert (done.stdout.split(), done.stderr) == (offered, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts_too(command: Command, shell: str) -> None:
    done = command("completion", shell)
    assert (done.code, done.problem) == (0, "")
    assert f"_POLICYSCHED_COMPLETE=complete_{shell}" in done.out
