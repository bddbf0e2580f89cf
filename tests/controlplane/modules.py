"""Writes the go.mod files of the tests' Go modules for each release of Kubernetes.

A module's own requirements stay. Requirements and replacements of Kubernetes' modules get the release's version;
indirect requirements are those of Kubernetes itself, so that programs are built with the dependencies of their release.
After a change of RELEASES, `python -m tests.controlplane.modules` writes the files of all releases.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.controlplane.golang import SETTINGS, BuildError, find_go
from tests.controlplane.releases import RELEASES, Release

TESTS: Final = Path(__file__).resolve().parents[1]
ORACLE: Final = TESTS / "oracle"
MODULES: Final = {
    ORACLE: ("./...",),
    TESTS / "controlplane": (
        "go.etcd.io/etcd/server/v3",
        *(f"k8s.io/kubernetes/cmd/{name}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")),
        "k8s.io/kubernetes/cmd/kubectl",
    ),
    TESTS / "conformance_suite": ("-test", "./..."),
}
"""The packages of each module that has a go.mod for each release, as `go list` takes them."""
KUBERNETES: Final = "k8s.io/kubernetes"
_REQUIREMENT: Final = re.compile(r"^(?:require )?\s*([\w./~-]+\.[\w./~-]+) (v\S+)( // indirect)?$", re.M)
_STAGED: Final = "v0.0.0"
"""The version by which Kubernetes' go.mod requires the modules of its own repository."""


def staging_version(version: str) -> str:
    """Return the version of Kubernetes' libraries that belongs to a release: v0.37.2 for v1.37.2."""
    return re.sub(r"^v1\.", "v0.", version)


def go_mod_for(release: Release, own: str, kubernetes: str) -> str:
    """Return a go.mod for another version of Kubernetes.

    Args:
        release: The version.
        own: The text of the module's go.mod for any version.
        kubernetes: The text of the go.mod of k8s.io/kubernetes at that version.
    """
    version = release.version
    pinned = {name: found for name, found, _ in _REQUIREMENT.findall(kubernetes)} | dict(release.pins)
    staged = sorted(name for name, found in pinned.items() if found == _STAGED)

    def at_version(name: str, known: str) -> str:
        if name == KUBERNETES:
            return version
        return staging_version(version) if name in staged else pinned.get(name, known)

    direct = [(name, at_version(name, known)) for name, known, indirect in _requirements(own) if not indirect]
    indirect = [(name, found) for name, found in pinned.items() if found != _STAGED and name not in dict(direct)]
    indirect += [(KUBERNETES, version)] if KUBERNETES not in dict(direct) else []
    replaced = dict.fromkeys(staged, staging_version(version)) | dict(release.pins)
    parts = [
        f"module {_line(own, 'module')}\n\ngo {_line(kubernetes, 'go')}\n\ngodebug {_line(kubernetes, 'godebug')}\n",
        _block("tool", _tools(own)),
        _block("require", (f"{name} {found}" for name, found in direct)),
        _block("require", (f"{name} {found} // indirect" for name, found in indirect)),
        _block("replace", (f"{name} => {name} {found}" for name, found in replaced.items())),
    ]
    return "\n".join(part for part in parts if part)


def _requirements(text: str) -> list[tuple[str, str, str]]:
    return _REQUIREMENT.findall(text.split("\nreplace ", maxsplit=1)[0])


def _line(text: str, word: str) -> str:
    found = re.search(rf"^{word} (\S.*)$", text, re.M)
    if found is None:
        raise ValueError(f"the go.mod has no line {word!r}")
    return found[1]


def _tools(text: str) -> list[str]:
    block = re.search(r"^tool \(\n(.*?)^\)", text, re.M | re.S)
    return [] if block is None else block[1].split()


def _block(word: str, lines: Iterable[str]) -> str:
    lines = list(lines)
    return f"{word} (\n" + "".join(f"\t{line}\n" for line in lines) + ")\n" if lines else ""


def write(release: Release, module: Path) -> None:
    """Write a module's go.mod and go.sum for a release.

    Raises:
        BuildError: There is no such version, or a dependency of it cannot be fetched.
    """
    name = "go.mod" if release.is_oldest else f"go{release.number}.mod"
    kubernetes = Path(download(release, release.version)["GoMod"]).read_text("utf-8")
    text = go_mod_for(release, (module / "go.mod").read_text("utf-8"), kubernetes)
    (module / name).write_text(text, "utf-8")
    (module / name).with_suffix(".sum").unlink(missing_ok=True)
    resolve(release, module, name, MODULES[module])


def resolve(release: Release, module: Path, mod_file: str, packages: Iterable[str]) -> None:
    """Complete a go.mod and its go.sum with all that packages need.

    Raises:
        BuildError: A dependency cannot be fetched.
    """
    flags = ["-mod=mod", f"-modfile={mod_file}", f"-tags={','.join(release.tags)}"]
    _go(release, module, "list", *flags, "-deps", *packages)


def download(release: Release, version: str) -> dict[str, str]:
    """Fetch Kubernetes' module: `GoMod` is the path of its go.mod, `Dir` the folder of its sources.

    Raises:
        BuildError: The module proxy does not have the version.
    """
    with tempfile.TemporaryDirectory() as nowhere:
        found: dict[str, str] = json.loads(
            _go(release, Path(nowhere), "mod", "download", "-json", f"{KUBERNETES}@{version}")
        )
    return found


def published(release: Release) -> list[str]:
    """Return the published versions of Kubernetes.

    Args:
        release: The release whose Go is used.

    Raises:
        BuildError: The module proxy does not answer.
    """
    with tempfile.TemporaryDirectory() as nowhere:
        return _go(release, Path(nowhere), "list", "-m", "-versions", f"{KUBERNETES}@latest").split()[1:]


def _go(release: Release, folder: Path, *arguments: str) -> str:
    command = ["nice", str(find_go(release.go)), *arguments]
    environment = os.environ | SETTINGS | {"GOFLAGS": "-buildvcs=false"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"go {' '.join(arguments)}:\n{done.stderr[-4000:]}")
    return done.stdout


def main() -> int:
    """Write the go.mod files; the exit code is 1 where that is not possible."""
    try:
        for release in RELEASES.values():
            for module in (ORACLE,) if release.is_preview else MODULES:
                sys.stdout.write(f"{release.version}: {module.name}\n")
                sys.stdout.flush()
                write(release, module)
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
