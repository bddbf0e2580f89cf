"""Printing of values as JSON and YAML; escaping of texts for Markdown and workflow commands of GitHub Actions.

A command makes one plain value (for JSON and YAML) and rows of texts (for tables). GitHub Actions shows workflow
commands as annotations beside the lines of a change.

Source: actions/toolkit, packages/core/src/command.ts (what has to be escaped).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

import yaml

from policysched.cli.flags.formats import OutputFormat
from policysched.cli.output import print_json, print_lines
from policysched.visible import visible

_DATA: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY: Final = {**_DATA, ":": "%3A", ",": "%2C"}
_PLACED: Final = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<col>\d+): (?P<message>.*)", re.DOTALL)
_MARKUP: Final = {**{one: f"\\{one}" for one in "\\|`*_<>[]~$"}, "&": "&amp;"}
_LINKED: Final = re.compile(r":(?=//|(?:(?!\d+:)[\w+-]+|100|1234):)|(?<=mailto):|(?<=xmpp):|(?<=www)\.", re.IGNORECASE)
"""Parts of a text that GitHub turns into links or emoji: `https://…`, `www.…`, `:smile:`."""
_MENTIONS: Final = re.compile(r"([@#])(?=\w)")
"""Mentions of users, teams and issues, which GitHub turns into links and notifications even if escaped."""


API_VERSION: Final = "output.policysched.io/v1alpha1"
"""The apiVersion of JSON and YAML outputs."""


def print_document(kind: str, value: Mapping[str, Any] | Sequence[Any], output: enum.StrEnum) -> None:
    """Print a value with `apiVersion` and `kind` as JSON or YAML; a list becomes the `items` of a list kind.

    Args:
        kind: The kind of the value, or of each item.
        value: The plain value.
        output: `json` or `yaml`, of any enumeration of formats.
    """
    if isinstance(value, Mapping):
        print_value({"apiVersion": API_VERSION, "kind": kind, **value}, output)
    else:
        print_value({"apiVersion": API_VERSION, "kind": f"{kind}List", "items": [*value]}, output)


def print_value(value: Any, output: enum.StrEnum) -> None:
    """Print a plain value as JSON or YAML; invisible characters are escaped."""
    if output.value == OutputFormat.YAML.value:
        print_lines(
            yaml.safe_dump(value, sort_keys=False, allow_unicode=False, width=120).removesuffix("\n"), commands=True
        )
    else:
        print_json(value)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table with escaped cells."""
    lines = [columns, ["---"] * len(columns)]
    written = [*lines, *([markdown_text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in written)


def markdown_text(text: str) -> str:
    """Escape a text for Markdown."""
    escaped = "".join(_MARKUP.get(one, one) for one in visible(text))
    return _MENTIONS.sub(r"\1<!-- -->", _LINKED.sub(r"\\\g<0>", escaped))


def workflow_command(name: str, data: str, properties: Mapping[str, object] | None = None) -> str:
    """Return a workflow command of GitHub Actions.

    Args:
        name: `error`, `warning` or `notice`.
        data: The message; may have several lines.
        properties: `file`, `line`, `col`, `endColumn` and `title`; a file is written with slashes.
    """
    given = dict(properties or {})
    if "file" in given:
        given["file"] = PurePath(str(given["file"])).as_posix()
    written = ",".join(f"{key}={_escaped(str(value), _PROPERTY)}" for key, value in given.items())
    return f"::{name}{' ' if written else ''}{written}::{_escaped(data, _DATA)}"


def placed_error(problem: str, properties: Mapping[str, object] | None = None) -> str:
    """Return the workflow command of an error; a leading `FILE:LINE:COLUMN:` becomes its properties."""
    match = _PLACED.fullmatch(problem)
    if match is None:
        return workflow_command("error", visible(problem), properties)
    where = {"file": match["file"], "line": match["line"], "col": match["col"]}
    return workflow_command("error", visible(match["message"]), {**where, **(properties or {})})


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)
