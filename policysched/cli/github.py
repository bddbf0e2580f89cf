"""Findings as workflow commands of GitHub Actions, which it shows beside the lines of a change.

Source: actions/toolkit, packages/core/src/command.ts (what has to be escaped).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from policysched.app.checking.findings import Finding
from policysched.app.files.objects import STDIN, shown
from policysched.errors import UsageError
from policysched.visible import visible

_DATA: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY: Final = {**_DATA, ":": "%3A", ",": "%2C"}
_PLACED: Final = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<col>\d+): (?P<message>.*)", re.DOTALL)


def annotation(one: Finding) -> str:
    """Give the command for a finding."""
    found, place = one.diagnostic, one.place()
    where: dict[str, object] = {}
    if one.document is not None and place is not None and one.document.file != shown(STDIN):
        where |= {"file": _path(one.document.file), "line": place.line, "col": place.column}
        where["endColumn"] = one.end(place)
    help_text = f"\nhelp: {visible(found.help)}" if found.help else ""
    return _command(found.severity, {**where, "title": found.code}, f"{visible(found.message)}{help_text}")


def problem(error: UsageError) -> str:
    """Give the command for a file that cannot be read."""
    match = _PLACED.fullmatch(str(error))
    if match is None:
        return _command("error", {}, visible(str(error)))
    where = {"file": _path(match["file"]), "line": match["line"], "col": match["col"]}
    return _command("error", where, visible(match["message"]))


def _path(file: str) -> str:
    """Give a file's name as the repository has it."""
    return PurePath(file).as_posix()


def _command(name: str, properties: Mapping[str, object], data: str) -> str:
    written = ",".join(f"{key}={_escaped(str(value), _PROPERTY)}" for key, value in properties.items())
    return f"::{name}{' ' if written else ''}{written}::{_escaped(data, _DATA)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)
