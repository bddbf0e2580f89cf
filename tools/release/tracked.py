"""Copy of the files that git tracks, without untracked files and the machine's times and modes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def copy_tracked(target: Path) -> None:
    """Copy the tracked files of the work tree, and links as links; `target` must not exist."""
    for name in _git("ls-files", "-z").rstrip("\0").split("\0"):
        source, copy = ROOT / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy, follow_symlinks=False)


def build_time() -> int:
    """Return the time that archives and documents state: the time of the newest commit. Units: seconds since 1970.

    The environment variable SOURCE_DATE_EPOCH overrides it.
    """
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct"))


def _git(*arguments: str) -> str:
    """Return the output of a git command, which accepts a folder that belongs to another user."""
    command = ["git", "-c", f"safe.directory={ROOT}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
