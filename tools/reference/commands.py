"""The reference of commands: usage, flags, defaults and exit codes, from the texts of `--help`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from policysched.cli import SECTIONS, make_app
from policysched.cli.flags.sections import FLAGS
from policysched.cli.help import EXIT_CODES, default_text, exit_codes, paragraphs, usage, value_name

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
HEAD: Final = """---
description: Every command of policysched with its arguments, flags, defaults and exit codes.
---

# Commands

Look up a command or a flag. `policysched COMMAND --help` prints the same texts. A flag marked
"repeatable" can be given several times.

"""
COMMON: Final = """## All commands

Every command has `--help` (`-h`). A command that fails prints one line `error: …` on standard error. Notes about an
answer are lines `note: …` on standard error. Set `NO_COLOR` to disable colors on a terminal.

| exit code | meaning |
|---|---|
| 0 | success; the answer is yes, or nothing changes |
| 1 | the answer is no: policies have errors, tests fail, decisions differ or, with `--exit-code`, a pod fits no node |
| 2 | invalid input or a failure: a file, an object or a flag is invalid, a server cannot be reached, a plugin fails |
| 130 | interrupted with Ctrl-C |
| 141 | the reader of standard output closed it, as `head -1` does |

The table of a command below states what its codes mean there.
"""
RUN: Final = "run"


def page() -> str:
    """Return the text of the reference page about commands."""
    commands = get_command(make_app()).commands  # type: ignore[attr-defined]
    sections = list(_sections(commands))
    rows = [
        f"| [`policysched {name}`](#policysched-{name.replace(' ', '-')}) | {_cell(paragraphs(one)[0])} |"
        for _, listed in sections
        for name, one in listed
    ]
    parts = [HEAD, "\n".join(["| command | purpose |", "|---|---|", *rows]), "\n\n", COMMON]
    for title, listed in sections:
        parts.append(f"\n## {title}\n")
        parts += [f"\n{_command(name, one)}" for name, one in listed]
    return "".join(parts)


def _sections(commands: dict[str, Any]) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Yield the sections of `policysched --help` with their commands; a group is replaced by its subcommands."""
    for title, names in SECTIONS.values():
        shown = [
            *names,
            *(name for name, one in commands.items() if one.rich_help_panel == title and name not in names),
        ]
        yield title, [made for name in shown for made in _leaves(name, commands[name])]


def _leaves(name: str, command: Any) -> list[tuple[str, Any]]:
    own = getattr(command, "commands", None)
    return [(name, command)] if own is None else [(f"{name} {part}", one) for part, one in own.items()]


def _command(name: str, command: Any) -> str:
    said = paragraphs(command)
    codes = [one for one in said if one.startswith(EXIT_CODES)]
    parts = [
        f"### policysched {name}\n",
        f"```sh usage\n{usage(('policysched', name), command)}\n```\n",
        *(f"{one}\n" for one in said if one not in codes),
    ]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    if arguments:
        rows = [f"| `{_cell(value_name(one))}` | {_cell(one.help)} |" for one in arguments]
        parts.append("\n".join(["| argument | meaning |", "|---|---|", *rows, ""]))
    parts += _run_flags() if name == RUN else _flags(command)
    parts += [_codes(one) for one in codes]
    return "\n".join(parts)


def _flags(command: Any) -> Iterator[str]:
    rows = [
        f"| {_names(one.opts)} | {_code(value_name(one))} | {_code(default_text(one))} | {_cell(_meaning(one))} |"
        for one in command.params
        if one.param_type_name == "option"
    ]
    if rows:
        yield _flag_table(rows)


def _run_flags() -> Iterator[str]:
    for title, flags in groupby(FLAGS, key=lambda one: one.section):
        yield f"#### {title}\n"
        yield _flag_table(
            f"| `{one.option}` | {_code(one.form.metavar)} | {_code('' if one.default == '[]' else one.default)} "
            f"| {_cell(f'No effect: {one.no_effect}.' if one.no_effect else one.help)} |"
            for one in flags
        )


def _flag_table(rows: Any) -> str:
    return "\n".join(["| flag | value | default | meaning |", "|---|---|---|---|", *rows, ""])


def _codes(text: str) -> str:
    """Convert a paragraph such as `Exit codes: 0 success; 2 a flag is invalid.` to a table."""
    found = exit_codes(text)
    return "\n".join(
        ["| exit code | meaning |", "|---|---|", *(f"| {code} | {_cell(what)} |" for code, what in found), ""]
    )


def _names(options: list[str]) -> str:
    return ", ".join(f"`{one}`" for one in options)


def _meaning(one: Any) -> str:
    return f"{one.help} Required." if one.required else str(one.help)


def _code(text: str) -> str:
    return f"`{_cell(text)}`" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
