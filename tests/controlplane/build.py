"""Kubernetes programs for the tests, built from Go modules at the versions in their go.mod files.

A program is built at its first use and kept in the user's cache folder. `python -m tests.controlplane.build` builds all
programs that the tests need, with the oracles of all compared releases, helm and actionlint, and prints its progress.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from tests.controlplane.golang import BuildError, find_go, go_build, program_folder
from tests.controlplane.releases import COMPARED, RELEASES, Release, ReleaseError, chosen
from tests.deploy import build as deploy
from tests.oracle import build as oracle

__all__ = ["BuildError", "binary", "build_all"]

HERE: Final = Path(__file__).resolve().parent
PACKAGES: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}


def binary(name: str, release: Release | None = None) -> Path:
    """Return a program of a release, by default the chosen one; it is built if it is missing.

    Raises:
        BuildError: it cannot be built here.
    """
    release = release or chosen()
    target = program_folder(release) / name
    if not target.exists():
        go_build(HERE, PACKAGES[name], target, release=release)
    return target


def build_all(say: Callable[[str], None]) -> None:
    """Build every program and the oracle, with a line before and after each.

    Raises:
        BuildError: one cannot be built here.
    """
    steps: dict[str, Callable[[], Path]] = {name: partial(binary, name) for name in PACKAGES}
    for minor in COMPARED:
        release = RELEASES[minor]
        steps |= {f"{name} {release.version}": partial(oracle.binary, name, release) for name in oracle.PACKAGES}
        if release is not chosen():
            steps[f"kubectl {release.version}"] = partial(binary, "kubectl", release)
    steps |= {"helm": deploy.helm, "actionlint": deploy.actionlint}
    say(f"Kubernetes {chosen().version} for the tests, kept in {program_folder()}")
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
    except (BuildError, ReleaseError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
