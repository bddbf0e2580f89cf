"""Help texts at several widths: no name is cut, on a terminal or in a pipe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from typer.main import get_command

from policysched.cli import make_app
from tests.cli.conftest import Command, Done
from tests.cli.processes import on_a_terminal
from tools.documents.markdown import ROOT


def _leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, one in getattr(command, "commands", {}).items():
        yield from _leaves(one, (*words, name))


COMMANDS = dict(_leaves(get_command(make_app())))


def _names(command: Any) -> list[str]:
    found = [name for one in command.params if one.param_type_name == "option" for name in one.opts]
    return [*(name for name in found if not name.endswith("-completion")), *getattr(command, "commands", ())]


@pytest.mark.parametrize("columns", [60, 80, 120, 0], ids=["60", "80", "120", "unknown"])
@pytest.mark.parametrize("words", COMMANDS, ids=lambda one: " ".join(one) or "policysched")
def test_help_shows_every_name_whole(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], columns: int
) -> None:
    if columns:
        monkeypatch.setenv("COLUMNS", str(columns))
    done = command(*words, "--help")
    assert (done.code, done.problem) == (0, "")
    shown = done.out.replace(",", " ").split()
    assert [name for name in (*_names(COMMANDS[words]), "--help") if name not in shown] == []
    assert "…" not in done.out.partition("\n")[2]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_text_beside_names_keeps_to_the_width(command: Command, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = command("plan", "--help").out.splitlines()
    assert max(map(len, (one for one in lines if "policysched plan" not in one))) <= columns


def test_help_on_a_terminal_shows_every_name_whole() -> None:
    written = on_a_terminal("run", "--help", NO_COLOR="1").split()
    assert {"--leader-elect-resource-namespace", "--http2-max-streams-per-connection"} <= set(written)
    assert "\x1b" in on_a_terminal("run", "--help")


@pytest.mark.parametrize("words", [(), ("config",), ("plugin",)])
def test_group_without_a_command_prints_its_help_and_ends_with_2(command: Command, words: tuple[str, ...]) -> None:
    done = command(*words)
    assert (done.code, done.problem) == (2, "")
    assert done.out == command(*words, "--help").out


@pytest.mark.parametrize("words", COMMANDS, ids=lambda one: " ".join(one) or "policysched")
def test_help_command_prints_the_same_text(command: Command, words: tuple[str, ...]) -> None:
    assert command("help", *words) == command(*words, "--help")


def test_help_of_an_unknown_command_is_an_error(command: Command) -> None:
    done = command("help", "plam")
    assert (done.code, done.out) == (2, "")
    assert done.problem.startswith("error: no such command 'plam'. Did you mean 'plan'")


def test_version_flag_prints_what_the_command_prints(command: Command) -> None:
    assert command("--version") == command("version")


def test_no_flag_edits_the_files_of_a_shell(command: Command) -> None:
    assert "completion" not in command("--help").out.partition("Flags:")[2]
    for flag in ("--install-completion", "--show-completion"):
        done = command(flag)
        assert (done.code, done.out) == (2, "")
        assert done.problem.startswith(f"error: no such option: {flag}")


def test_crd_prints_the_definition_of_this_version(command: Command) -> None:
    text = (ROOT / "crds" / "schedulingpolicies.yaml").read_text("utf-8")
    assert command("crd") == Done(0, text, "")
    printed = command("crd", "-o", "json")
    assert json.loads(printed.out) == yaml.safe_load(text)
