"""Builds the files of a release from a copy of the tracked files."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.release.archives import members_below, pack
from tools.release.checking import ReleaseError, changelog_section
from tools.release.sbom import write_sbom
from tools.release.tracked import build_time, copy_tracked

IMAGE: Final = "ghcr.io/policysched/policysched"
"""Name of the image in the released chart; in the repository's chart, the user builds the image."""
CHECKSUMS: Final = "SHA256SUMS"
NOTES: Final = "RELEASE_NOTES.md"


def build(folder: Path, version: str) -> list[Path]:
    """Build all files of a release into an empty or missing folder and return them.

    Raises:
        ReleaseError: the folder has files, or a file cannot be built.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ReleaseError(f'"{folder}" is not empty; name another folder, or remove its files')
    seconds = build_time()
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "policysched"
        copy_tracked(tree)
        wheel = _python_archives(tree, folder, seconds)
        _cluster_archives(tree, folder, version, seconds)
        lock = (tree / "requirements.lock").read_text("utf-8")
        write_sbom(folder / f"policysched-{version}.spdx.json", wheel, version, lock, seconds)
        _, notes = changelog_section(tree, version)
    files = sorted(folder.iterdir())
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (folder / CHECKSUMS).write_text(sums, "utf-8")
    (folder / NOTES).write_text(notes, "utf-8")
    return [*files, folder / CHECKSUMS, folder / NOTES]


def _python_archives(tree: Path, folder: Path, seconds: int) -> Path:
    """Build wheel and source archive; return the wheel."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder.resolve())]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(seconds)}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"hatchling failed: {done.stderr.strip()}")
    [wheel] = folder.glob("*.whl")
    return wheel


def _cluster_archives(tree: Path, folder: Path, version: str, seconds: int) -> None:
    """Build the chart, the kustomizations and the CRD."""
    chart = members_below(tree / "deploy" / "chart", "policysched")
    chart["policysched/values.yaml"] = _with_image(chart["policysched/values.yaml"])
    pack(folder / f"policysched-{version}.tgz", chart, seconds)
    name = f"policysched-{version}"
    parts = members_below(tree / "deploy", f"{name}/deploy") | members_below(tree / "crds", f"{name}/crds")
    kept = {path: content for path, content in parts.items() if not path.startswith(f"{name}/deploy/chart/")}
    kept |= {f"{name}/{file}": (tree / file).read_bytes() for file in ("LICENSE", "NOTICE")}
    pack(folder / f"{name}-kustomize.tgz", kept, seconds)
    definitions = [path.read_text("utf-8") for path in sorted((tree / "crds").glob("*.yaml"))]
    (folder / f"{name}-crds.yaml").write_text("---\n".join(definitions), "utf-8")


def _with_image(values: bytes) -> bytes:
    """Return the values of the chart with the released image."""
    default = b"  repository: policysched\n"
    if values.count(default) != 1:
        raise ReleaseError("deploy/chart/values.yaml: `image.repository` is not `policysched`")
    return values.replace(default, f"  repository: {IMAGE}\n".encode())
