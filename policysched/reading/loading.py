"""Load the Kubernetes objects of files and folders.

In a folder, these files are skipped: files without objects, Kustomizations, charts and other YAML such as the values of
a chart. Notes name the skipped files and the subfolders, which are not read. A file that the user names must have
objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from policysched.errors import UsageError
from policysched.reading.documents import Document, EmptyFileError, ForeignFileError, read
from policysched.reading.files import read_text, shown
from policysched.reading.folders import empty, expand, listed, unread

_BUILDERS: Final = {
    "kustomization.yaml": "kubectl kustomize",
    "kustomization.yml": "kubectl kustomize",
    "Chart.yaml": "helm template",
}
"""For a file name such as Chart.yaml: the command that renders the objects of a folder with this file."""


@dataclass(slots=True)
class IgnoredFiles:
    """Collects ignored files (such as Helm charts in folders) and ignored subfolders, for notes to the user."""

    foreign: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    """Kustomizations and Helm charts that were not read."""
    subfolders: list[str] = field(default_factory=list)
    """Notes about folders with subfolders, one per folder."""

    def expand(self, name: str) -> list[str]:
        """Return the files of a folder and record its subfolders; for the name of anything else, return the name.

        Raises:
            UsageError: the folder cannot be read or has no YAML or JSON file.
        """
        files = expand(name)
        if files != [name]:
            self.subfolders += [f"{name}: {text}" for text in unread(name)]
        return files

    def read(self, file: str, read_file: Callable[[str], list[Document]]) -> list[Document]:
        """Read a file of a folder; if the file contains no objects, record the file and return nothing.

        Raises:
            UsageError: the file is malformed.
        """
        if Path(file).name in _BUILDERS:
            self.sources.append(file)
            return []
        try:
            return read_file(file)
        except EmptyFileError:
            return []
        except ForeignFileError:
            self.foreign.append(file)
            return []

    def notes(self) -> list[str]:
        """Return notes about ignored files, one per kind of files, and about subfolders, one per folder."""
        made = []
        if self.foreign:
            made.append(f"ignored {listed(self.foreign)}: no Kubernetes objects")
        if self.sources:
            made.append(f"ignored {listed(self.sources)}: {_how_to_build(self.sources[0])}")
        return made + self.subfolders


def load(names: Iterable[str], notes: list[str] | None = None) -> list[Document]:
    """Return the objects of files, of folders and, for `-`, of the standard input.

    Args:
        names: The files and folders.
        notes: Receives a note about each ignored file.

    Raises:
        UsageError: a file cannot be read or is not made of Kubernetes objects.
    """
    return load_each(names, lambda file: read(read_text(file), shown(file)), notes)


def load_each(
    names: Iterable[str], read_file: Callable[[str], list[Document]], notes: list[str] | None = None
) -> list[Document]:
    """Return the objects of files and folders; the argument `read_file` reads each file.

    Raises:
        UsageError: a file cannot be read or is not made of Kubernetes objects.
    """
    ignored = IgnoredFiles()
    found: list[Document] = []
    for name in names:
        files = ignored.expand(name)
        if files == [name]:
            found += read_file(name)
            continue
        inside = [document for file in files for document in ignored.read(file, read_file)]
        if not inside:
            build = [_how_to_build(file) for file in files if Path(file).name in _BUILDERS][:1]
            raise empty(name, "no Kubernetes objects in the folder", *build)
        found += inside
    if notes is not None:
        notes += ignored.notes()
    return found


def _how_to_build(source: str) -> str:
    file = Path(source)
    return f"to use its output, run `{_BUILDERS[file.name]} {file.parent}` and pipe it into the command as file `-`"


def load_one(file: str, kind: str) -> Document:
    """Load a file that must contain one object of a kind.

    Args:
        file: The file.
        kind: The kind that the error message names.

    Raises:
        UsageError: the file cannot be read, or does not hold one object.
    """
    found = load([file])
    if len(found) > 1:
        raise UsageError(f"{found[1].where}: expected one {kind}, got several objects")
    if not found:
        raise UsageError(f"{file}: expected one {kind}, got no object")
    return found[0]
