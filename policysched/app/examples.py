"""The examples of policysched: a list, and copies of their files.

An example is a folder of `examples/` in a clone. A wheel contains a copy of that folder as data.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from policysched.app.report_table import ReportTable
from policysched.errors import PolicyschedError, UsageError
from policysched.visible import visible

FIRST: Final = "tutorial"
"""Name of the first example in the list."""
LAST: Final = ("pod-groups", "queues")
"""Names of the last examples in the list."""
_GROUPS: Final = ("tour", "cookbook")
"""Folders of `examples/` that contain examples, in the order of the list."""
_CACHES: Final = "__pycache__"
_SENTENCE: Final = re.compile(r"(.+?[.!?])(?:\s|$)")
_CLOSE: Final = 3
"""Largest number of similar names in an error message."""


@dataclass(frozen=True, slots=True)
class Example:
    """An example of policysched: name, description and files."""

    name: str
    """Path of the example's folder inside `examples/`, such as `tour/04-gpu-models`."""
    description: str
    """The title of the example's README, or the first sentence of its policy's comment; empty without either."""
    folder: Path
    files: tuple[str, ...]
    """Paths of the example's files relative to its folder, sorted."""

    @property
    def short_name(self) -> str:
        """The last part of the example's name."""
        return self.name.rpartition("/")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """All names by which users can select the example: with or without the group, with or without the number."""
        group, slash, last = self.name.rpartition("/")
        topic = last.lstrip("0123456789").lstrip("-")
        return topic, last, f"{group}{slash}{topic}", self.name

    def to_dict(self) -> dict[str, Any]:
        """Return the example as plain values for JSON output."""
        return {"name": self.name, "description": self.description, "files": list(self.files)}


@cache
def list_examples() -> tuple[Example, ...]:
    """Return all examples: the tutorial, then the tour, the cookbook, pod groups and queues.

    Raises:
        PolicyschedError: the installation has no examples.
    """
    root = _root()
    return tuple(_example(root, folder) for folder in _folders(root))


def find_example(name: str) -> Example:
    """Return the example with a name; the user can omit the group and the number in the name.

    Raises:
        UsageError: no example has the name; the text suggests similar names.
    """
    wanted = name.strip().strip("/").lower()
    known = {key: one for one in reversed(list_examples()) for key in one.names}
    if wanted in known:
        return known[wanted]
    parts = [key for key in known if len(wanted) > 2 and wanted in key]
    similar = parts or difflib.get_close_matches(wanted, known, n=_CLOSE, cutoff=0.6)
    names = list(dict.fromkeys(known[key].name for key in similar))[:_CLOSE]
    hint = f"did you mean {' or '.join(names)}?" if names else "run `policysched example` to list all examples"
    raise UsageError(f'unknown example "{name}"; {hint}')


def write_example(example: Example, folder: Path, *, overwrite: bool = False) -> None:
    """Copy the files of an example into a folder, which is created if it does not exist.

    Args:
        example: The example.
        folder: The target.
        overwrite: Whether the folder may have files; files of the same name are overwritten, all others stay.

    Raises:
        UsageError: the folder has files and `overwrite` is false, or a file cannot be written.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder}: cannot write: not a folder")
        if not overwrite and folder.is_dir() and any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty; name another folder, or use --force to overwrite files")
        for file in example.files:
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((example.folder / file).read_bytes())
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"{error.filename or folder}: cannot write: {why}") from error


def example_table(examples: Sequence[Example]) -> ReportTable:
    """Return a table of examples."""
    table = ReportTable("example", "description")
    table.wraps = True
    for one in examples:
        table.add_row(Text(visible(one.name)), Text(visible(one.description or ", ".join(one.files))))
    return table


def _root() -> Path:
    package = Path(str(resources.files("policysched")))
    # A wheel contains the examples as data; in a clone they are next to the package.
    for place in (package / "data" / "examples", package.parent / "examples"):
        if (place / FIRST).is_dir():
            return place
    raise PolicyschedError("this installation has no examples; install policysched again")


def _folders(root: Path) -> Iterator[Path]:
    yield root / FIRST
    for group in _GROUPS:
        if (root / group).is_dir():
            yield from sorted(one for one in (root / group).iterdir() if one.is_dir() and one.name != _CACHES)
    yield from (root / name for name in LAST)


def _example(root: Path, folder: Path) -> Example:
    files = sorted(one for one in folder.rglob("*") if one.is_file() and _CACHES not in one.parts)
    names = tuple(one.relative_to(folder).as_posix() for one in files)
    return Example(folder.relative_to(root).as_posix(), _description(folder), folder, names)


def _description(folder: Path) -> str:
    readme, policy = folder / "README.md", folder / "policy.yaml"
    if readme.is_file():
        titles = (line for line in readme.read_text("utf-8").splitlines() if line.startswith("# "))
        return next(titles, "").removeprefix("# ").replace("`", "")
    if not policy.is_file():
        return ""
    comment: list[str] = []
    for line in policy.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.lstrip("# "))
    text = " ".join(comment)
    sentence = _SENTENCE.match(text)
    return (sentence[1] if sentence else text).removesuffix(".")
