"""Help texts of commands; the names of flags and commands are never cut, however narrow the terminal.

`--help` prints them; the reference of commands is made from the same parts.
"""

from __future__ import annotations

import enum
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import typer

_MOST_COLUMNS: Final = 100
"""Largest width of help texts, so that lines stay readable. Units: columns."""
_LEAST_COLUMNS: Final = 40
_NAMES: Final = 34
"""Largest width of the left column; a longer name has a separate line. Units: columns."""
_EXAMPLE: Final = re.compile(r"Example: `(?P<command>.*)`\.?")
EXIT_CODES: Final = "Exit codes:"
NO_CHOICE: Final = {bool: "", int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "PATH"}
"""Value names in help texts for flags that define no value name, by the type of the flag."""


def help_text(command: Any, context: Any) -> str:
    """Return the help of a command, or of a group of commands."""
    width = max(_LEAST_COLUMNS, min(_MOST_COLUMNS, shutil.get_terminal_size().columns))
    parts = [f"{_bold('Usage:')} {usage(context.command_path.split(), command)}"]
    parts += [_paragraph(one, width) for one in paragraphs(command)]
    parts += [
        f"{_bold(title + ':')}\n" + "\n".join(_entries(rows, width)) for title, rows in _sections(command, context)
    ]
    return "\n\n".join(parts)


def usage(words: Iterable[str], command: Any) -> str:
    """Return the usage of a command: its arguments and required flags."""
    made = [*words]
    for one in command.params:
        value = value_name(one)
        if one.param_type_name == "argument":
            many = "…" if one.nargs != 1 else ""
            made.append(f"{value}{many}" if one.required else f"[{value}{many}]")
        elif one.required:
            made.append(f"{one.opts[0]} {value}")
    if any(one.param_type_name == "option" and not one.required for one in command.params):
        made.append("[flags]")
    if hasattr(command, "commands"):
        made.append("COMMAND")
    return " ".join(made)


def paragraphs(command: Any) -> list[str]:
    """Return the paragraphs of a command's help, each as one line."""
    return [" ".join(one.split()) for one in (command.help or "").split("\n\n")]


def exit_codes(text: str) -> list[tuple[str, str]]:
    """Return codes and meanings in a paragraph such as `Exit codes: 0 success; 2 a flag is invalid.`."""
    listed = re.split(r"; (?=\d)", text.removeprefix(EXIT_CODES).strip().rstrip("."))
    return [(code, meaning) for code, _, meaning in (one.partition(" ") for one in listed)]


def value_name(one: Any) -> str:
    """Return the value name of a flag or argument for help: the defined name, else its choices, else its type."""
    if one.metavar:
        return str(one.metavar)
    if getattr(one, "is_flag", False):
        return ""
    annotation = one.type_descriptor.annotation
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return "|".join(str(choice.value) for choice in annotation)
    return str(one.name).upper() if one.param_type_name == "argument" else NO_CHOICE[annotation]


def default_text(one: Any) -> str:
    """Return the default of a flag as text, empty if the flag has no default."""
    if one.default is None or one.default is False or one.default in ("", ()):
        return ""
    return str(one.default.value if isinstance(one.default, enum.Enum) else one.default)


def _sections(command: Any, context: Any) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each section of the help: title, and its commands, arguments or flags with their texts."""
    listed = getattr(command, "commands", {}).items()
    for title, commands in groupby(listed, lambda item: _panel(item[1], "Commands")):
        yield title, [(name, paragraphs(one)[0]) for name, one in commands]
    params = [one for one in command.get_params(context) if not getattr(one, "hidden", False)]
    arguments = [(value_name(one), str(one.help or "")) for one in params if one.param_type_name == "argument"]
    if arguments:
        yield "Arguments", arguments
    options = [one for one in params if one.param_type_name == "option"]
    titles = dict.fromkeys(_panel(one, "Flags") for one in options)
    for title in sorted(titles, key="Flags".__eq__):
        yield title, [(_names(one), _described(one)) for one in options if _panel(one, "Flags") == title]


def _panel(one: Any, default: str) -> str:
    named = getattr(one, "rich_help_panel", None)
    return named if isinstance(named, str) and named else default


def _names(one: Any) -> str:
    short = [name for name in one.opts if not name.startswith("--")]
    long = [name for name in one.opts if name.startswith("--")]
    names = f"{short[0] + ', ' if short else '    '}{', '.join([*long, *one.secondary_opts])}"
    return f"{names} {value_name(one)}".rstrip()


def _described(one: Any) -> str:
    default = default_text(one)
    extra = f" [default: {default}]" if default else " [required]" if one.required else ""
    return f"{one.help or ''}{extra}".strip()


def _entries(rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield lines with names and their texts in two columns; a name that is too long has a separate line."""
    limit = min(max(len(name) for name, _ in rows), _NAMES, width // 2 - 4)
    indent = " " * (limit + 4)
    for name, text in rows:
        lines = textwrap.wrap(text, width - len(indent), break_long_words=False, break_on_hyphens=False) or [""]
        shown = _colored(name, "cyan")
        if len(name) > limit:
            yield f"  {shown}"
        else:
            yield f"  {shown}{' ' * (limit - len(name))}  {lines.pop(0)}".rstrip()
        yield from (f"{indent}{line}" for line in lines if line)


def _paragraph(text: str, width: int) -> str:
    example = _EXAMPLE.fullmatch(text)
    if example is not None:
        return f"{_bold('Example:')}\n  {example['command']}"
    if text.startswith(EXIT_CODES):
        return f"{_bold(EXIT_CODES)}\n" + "\n".join(_entries(exit_codes(text), width))
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _bold(text: str) -> str:
    return typer.style(text, bold=True) if _has_colors() else text


def _colored(text: str, color: str) -> str:
    return typer.style(text, fg=color) if _has_colors() else text


def _has_colors() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
