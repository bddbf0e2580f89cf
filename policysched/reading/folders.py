"""Lists the files in folders; files in subfolders are not read, as with `kubectl apply -f`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from policysched.errors import UsageError
from policysched.reading.files import STDIN, SUFFIXES, TESTS, why

_MOST_NAMED: Final = 3
"""Largest number of files or subfolders that a message names; the message counts the others."""
_PATTERNS: Final = ("*", "*/*", "*/*/*")
"""Patterns of files in subfolders of a folder, such as `base/policy.yaml` and `overlays/prod/policy.yaml`."""


def expand(name: str) -> list[str]:
    """Return the YAML and JSON files of a folder; for the name of anything else, return the name.

    Policy test files of a folder are left out; they have no objects.

    Raises:
        UsageError: the folder cannot be read or has no such file.
    """
    path = Path(name)
    try:
        if name in ("", STDIN) or not path.is_dir():
            return [name]
        found = sorted(one for one in path.iterdir() if _has_objects(one))
    except OSError as error:
        raise UsageError(f"{name}: {why(error)}") from error
    if not found:
        raise empty(name, "no .yaml, .yml or .json file in the folder")
    return [str(one) for one in found]


def empty(name: str, problem: str, *hints: str) -> UsageError:
    """Return the error for a folder without objects; the message names the subfolders, which are not read."""
    return UsageError("; ".join([f"{name}: {problem}", *hints, *unread(name)]))


def unread(name: str) -> list[str]:
    """Return a note that subfolders with YAML or JSON files are not read; empty if a folder has no such subfolders."""
    if name in ("", STDIN):
        return []
    try:
        folders = sorted(one for one in Path(name).iterdir() if not one.name.startswith(".") and one.is_dir())
        found = [one.name for one in folders if any(_has_objects(file) for way in _PATTERNS for file in one.glob(way))]
    except OSError:
        return []
    return [f"subfolders are not read: {listed(found)}"] if found else []


def listed(names: list[str]) -> str:
    """Return a text for messages with the first names and the number of the other names."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _has_objects(file: Path) -> bool:
    return file.suffix in SUFFIXES and not TESTS.fullmatch(file.name) and file.is_file()
