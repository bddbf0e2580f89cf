"""Builds the oracle from its Go sources, once per version of them.

Knows nothing of cases. The flags are those of the control plane's programs, stamps included, so that
both share one build cache; the stamp also is what NodeDeclaredFeatures compares versions with. Several
checkouts share the folder of programs, so a program stays until others have been used more recently.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.controlplane.golang import go_build, link_flags, program_folder

SOURCES = Path(__file__).resolve().parent
KEPT = 6
"""How many programs stay: those of the sources that were used last."""


def binary() -> Path:
    """Give the path of the oracle, building it if its sources have changed.

    Raises:
        BuildError: Go is missing or the build fails.
    """
    program = program_folder() / f"oracle-{_fingerprint()}"
    if not program.exists():
        go_build(SOURCES, ".", program)
    program.touch()
    _forget_old(program.parent)
    return program


def _forget_old(folder: Path) -> None:
    programs = sorted(folder.glob("oracle-*"), key=_last_use, reverse=True)
    for old in programs[KEPT:]:
        old.unlink(missing_ok=True)


def _last_use(program: Path) -> float:
    try:
        return program.stat().st_mtime
    except FileNotFoundError:  # another test process was faster
        return 0.0


def _fingerprint() -> str:
    digest = hashlib.sha256(link_flags().encode())
    for path in sorted([*SOURCES.glob("*.go"), SOURCES / "go.mod", SOURCES / "go.sum"]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
