"""Prometheus for the tests: the one on the PATH, else the one of Debian's package, kept in the user's cache folder.

The package is unpacked and not installed: installing it would start a server on port 9090 and put a dozen packages of
its pages beside it, while the program alone runs as it is. `python -m tests.metric_sources.program` gets it before the
tests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.controlplane.golang import BuildError, alone, cache_root

NAME: Final = "prometheus"
_SAID: Final = 2000
"""How much of a failed command's output is shown. Units: characters."""


def binary(name: str = NAME) -> Path:
    """Return a program of the package, fetching it if it is not there yet.

    Args:
        name: `prometheus`, or `promtool` that checks rules.

    Raises:
        BuildError: it cannot be had here; the text says why and what would help.
    """
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    target = cache_root() / "bin" / "debian" / name
    with alone(NAME):
        if not target.exists():
            _fetch(target)
    return target


def _fetch(target: Path) -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise BuildError(
            "no prometheus on the PATH, and no apt-get to fetch Debian's with: install Prometheus 2 or later"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as name:
        folder = Path(name)
        if not _download(folder):
            _run(["apt-get", "-q", "update"], folder)
            _run(["apt-get", "-q", "download", NAME], folder)
        (package,) = folder.glob(f"{NAME}_*.deb")
        _run(["dpkg-deb", "--extract", str(package), "files"], folder)
        (folder / "files/usr/bin" / target.name).rename(target)


def _download(folder: Path) -> bool:
    """Try to fetch the package with the lists that are there: a fresh machine has none."""
    command = ["apt-get", "-q", "download", NAME]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout)[-_SAID:]
        raise BuildError(f"no prometheus on the PATH, and `{' '.join(command)}` fails:\n{said}")


def main() -> int:
    """Get the program; the exit code is 1 where that is not possible."""
    try:
        sys.stdout.write(f"Prometheus: {binary()}\n")
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
