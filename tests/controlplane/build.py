"""Kubernetes programs for the tests, built from Go modules at the versions in go.mod.

A program is built at its first use and kept in the user's cache folder, so that it costs minutes once and nothing
afterwards. `python -m tests.controlplane.build` builds all that the tests need, the oracle and helm too, and says how
far it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.controlplane.golang import VERSION, BuildError, find_go, go_build, program_folder
from tests.deploy import build as deploy
from tests.oracle import build as oracle

__all__ = ["VERSION", "BuildError", "binary", "build_all"]

HERE: Final = Path(__file__).resolve().parent
PACKAGES: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}


def binary(name: str) -> Path:
    """Return a program, building it if it is not there yet.

    Raises:
        BuildError: it cannot be built here.
    """
    target = program_folder() / name
    if not target.exists():
        go_build(HERE, PACKAGES[name], target)
    return target


def build_all(say: Callable[[str], None]) -> None:
    """Build every program and the oracle, with a line before and after each.

    Raises:
        BuildError: one cannot be built here.
    """
    steps: dict[str, Callable[[], Path]] = {name: lambda name=name: binary(name) for name in PACKAGES}  # type: ignore[misc]
    steps |= {name: lambda name=name: oracle.binary(name) for name in oracle.PACKAGES}  # type: ignore[misc]
    steps["helm"] = deploy.helm
    say(f"Kubernetes {VERSION} for the tests, kept in {program_folder()}")
    for number, (name, build) in enumerate(steps.items(), 1):
        say(f"[{number}/{len(steps)}] {name} ...")
        began = time.monotonic()
        path = build()
        say(f"[{number}/{len(steps)}] {name}: {path.stat().st_size >> 20} MB, {time.monotonic() - began:.1f} s")


def main() -> int:
    """Build everything; the exit code is 1 where that is not possible."""

    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    try:
        say(f"Go: {find_go()}")
        build_all(say)
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
