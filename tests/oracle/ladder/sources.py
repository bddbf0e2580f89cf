"""What changed between two versions in Kubernetes' sources: feature gates, and files of the scheduler."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

GATES: Final = "pkg/features/kube_features.go"
SCHEDULER: Final = "pkg/scheduler"
_TABLE: Final = re.compile(r"^\t(?:\w+\.)?(\w+): \{\n(.*?)^\t\},", re.M | re.S)
_SPEC: Final = re.compile(
    r'\{Version: \S*MustParse\("([\d.]+)"\), Default: (true|false), PreRelease: \w+\.(\w+)(, LockToDefault: true)?'
)


_READ: Final = re.compile(r"\bfeatures\.([A-Z]\w+)")


@dataclass(frozen=True)
class Gate:
    """A feature gate as a version of Kubernetes has it."""

    default: bool
    stage: str
    locked: bool

    def __str__(self) -> str:
        return f"{self.stage} {'on' if self.default else 'off'}{', locked' if self.locked else ''}"


@dataclass(frozen=True)
class FileChange:
    """A changed file with its lines."""

    path: str
    added: int
    removed: int


def gates(text: str, minor: str) -> dict[str, Gate]:
    """Return the feature gates of a version.

    Args:
        text: The text of kube_features.go.
        minor: The version's minor, such as 1.37: newer specifications are ignored.
    """
    found = {}
    for name, specs in _TABLE.findall(text):
        known = [spec for spec in _SPEC.findall(specs) if _number(spec[0]) <= _number(minor)]
        if known:
            _, default, stage, locked = max(known, key=lambda spec: _number(spec[0]))
            found[name] = Gate(default == "true", stage, bool(locked))
    return found


def changed_gates(old: dict[str, Gate], new: dict[str, Gate]) -> list[tuple[str, str, str]]:
    """Return the gates that differ: name, old state and new state, `-` where a version lacks it."""
    names = sorted({*old, *new})
    return [
        (name, str(old.get(name, "-")), str(new.get(name, "-"))) for name in names if old.get(name) != new.get(name)
    ]


def gates_read(*sources: Path) -> frozenset[str]:
    """Return the feature gates that the scheduler of any of some versions reads.

    Args:
        sources: The folders of Kubernetes' sources.
    """
    files = (path for one in sources for path in (one / SCHEDULER).rglob("*.go") if not path.stem.endswith("_test"))
    return frozenset(name for path in files for name in _READ.findall(path.read_text("utf-8")))


def changed_files(old: Path, new: Path, folder: str = SCHEDULER) -> list[FileChange]:
    """Return the changed Go files of a folder without tests, those with most changed lines first.

    Args:
        old: Kubernetes' sources at the old version.
        new: At the new one.
        folder: The folder in both.
    """
    command = ["git", "diff", "--no-index", "--numstat", "--no-renames", "-z", str(old / folder), str(new / folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    fields = done.stdout.split("\0")
    found = []
    for counts, before, after in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        added, removed, _ = counts.split("\t")
        path = before if after == os.devnull else after
        if added != "-" and path.endswith(".go") and not path.endswith("_test.go"):
            found.append(FileChange(path.rsplit(f"{folder}/", 1)[-1], int(added), int(removed)))
    return sorted(found, key=lambda one: -one.added - one.removed)


def _number(minor: str) -> tuple[int, ...]:
    return tuple(map(int, minor.split(".")[:2]))
