"""The publishing jobs of the release workflow, run step by step with substitutes for all that is outside this machine.

`cosign`, `skopeo`, `docker` and `gh` record how they are called. `helm` is the real one and pushes to a registry on the
loopback interface.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from policysched import __version__
from tests.deploy.build import helm
from tests.release.registry import Registry, serving
from tests.release.test_files import CLUSTER, PYTHON, checksums
from tools.release.building import CHECKSUMS, IMAGE, NOTES
from tools.release.tracked import ROOT

pytestmark = pytest.mark.kubectl
JOBS: Final = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))["jobs"]
IMAGES: Final = {f"policysched-{__version__}-image-{architecture}.tar" for architecture in ("amd64", "arm64")}
SIGNATURE: Final = f"{CHECKSUMS}.sigstore.json"
INDEX: Final = f"sha256:{'1' * 64}"
CONTEXT: Final = {
    "github.ref_name": f"v{__version__}", "github.actor": "releaser", "github.token": "secret",
    "github.repository": "policysched/policysched",
}  # fmt: skip
RECORD: Final = '#!/bin/sh -e\necho "$(basename "$0") $*" >> "$CALLS"\n'
PROGRAMS: Final = {
    "cosign": 'test "$1" = sign || { test -f "$5"; echo signature > "$4"; }\n',
    "skopeo": 'test -f "${6#oci-archive:}"; printf "sha256:%064d" 2 > "$5"\n',
    "docker": f'case "$*" in login*) cat > /dev/null;; *inspect*) echo {INDEX};; esac\n',
    "gh": 'for file; do case "$file" in dist/*) test -f "$file";; esac; done\n',
    "helm": 'exec "$HELM" "$1" "$2" "oci://$REGISTRY/${3#oci://*/}" --plain-http\n',
}


@dataclass
class Runner:
    """A machine that runs the commands of a job."""

    folder: Path
    registry: Registry
    outputs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        programs = self.folder / "bin"
        programs.mkdir()
        for name, text in PROGRAMS.items():
            (programs / name).write_text(RECORD + text, "utf-8")
            (programs / name).chmod(0o755)
        self.calls_file = self.folder / "calls"
        self.calls_file.touch()

    def calls(self, program: str) -> list[list[str]]:
        """Return the arguments of the calls of a program."""
        lines = [line.split() for line in self.calls_file.read_text("utf-8").splitlines()]
        return [arguments for name, *arguments in lines if name == program]

    def run(self, name: str, folder: Path) -> None:
        """Run the commands of a job in a folder; each must succeed."""
        job = JOBS[name]
        for step in job["steps"]:
            if "run" not in step:
                continue
            output = folder.with_name("output")
            output.write_text("")
            environment = {
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "CALLS": str(self.calls_file),
                "HELM": str(helm()), "REGISTRY": self.registry.address, "HOME": str(self.folder),
                "GITHUB_OUTPUT": str(output),
            }  # fmt: skip
            environment |= {key: self._value(text) for key, text in (job.get("env", {}) | step.get("env", {})).items()}
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            place = folder / step.get("working-directory", "")
            subprocess.run(command, cwd=place, env=environment, check=True, capture_output=True, text=True)
            for line in output.read_text("utf-8").splitlines():
                key, _, value = line.partition("=")
                self.outputs[f"steps.{step['id']}.outputs.{key}"] = value

    def _value(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: CONTEXT[found[1]], text)

    def inputs(self, name: str, action: str) -> list[dict[str, Any]]:
        """Return the inputs that a job gives to an action, with the outputs of earlier steps."""
        found = [step["with"] for step in JOBS[name]["steps"] if step.get("uses", "").startswith(f"{action}@")]
        return [{key: self._output(value) for key, value in one.items()} for one in found]

    def _output(self, value: Any) -> Any:
        return self.outputs[value[4:-3]] if isinstance(value, str) and value.startswith("${{ steps.") else value


@pytest.fixture
def runner(built: Path, tmp_path: Path) -> Iterator[Runner]:
    """A machine with the files of the earlier jobs."""
    shutil.copytree(built, tmp_path / "work" / "dist")
    for architecture in ("amd64", "arm64"):
        (tmp_path / "work" / "dist" / f"image-{architecture}.tar").write_text(architecture)
    with serving() as registry:
        yield Runner(tmp_path, registry)


def test_everything_is_pushed_signed_by_its_digest_and_attested(runner: Runner, tmp_path: Path) -> None:
    work = tmp_path / "work"
    runner.run("publish", work)
    chart = runner.registry.tags[__version__]
    assert runner.calls("cosign") == [
        ["sign-blob", "--yes", "--bundle", SIGNATURE, CHECKSUMS],
        ["sign", "--yes", f"{IMAGE}@{INDEX}"],
        ["sign", "--yes", f"ghcr.io/policysched/charts/policysched@{chart}"],
    ]
    assert [call[-1] for call in runner.calls("skopeo")] == [
        f"docker://{IMAGE}:{__version__}-{architecture}" for architecture in ("amd64", "arm64")
    ]
    [_, created, _] = runner.calls("docker")
    assert created[:5] == ["buildx", "imagetools", "create", "--tag", f"{IMAGE}:{__version__}"]
    attested = runner.inputs("publish", "actions/attest")
    assert attested[0] == {"subject-checksums": f"dist/{CHECKSUMS}"}
    assert [one.get("subject-digest") for one in attested[1:]] == [INDEX, chart]
    assert [one.get("subject-name") for one in attested[1:]] == [IMAGE, "ghcr.io/policysched/charts/policysched"]


def test_checksums_cover_every_file_of_the_release_s_page(runner: Runner, tmp_path: Path) -> None:
    work = tmp_path / "work"
    runner.run("publish", work)
    sums = checksums(work / "dist")
    assert set(sums) == PYTHON | CLUSTER | IMAGES
    for name, digest in sums.items():
        assert hashlib.sha256((work / "dist" / name).read_bytes()).hexdigest() == digest
    runner.run("page", work)
    [created] = runner.calls("gh")
    assert created[:4] == ["release", "create", f"v{__version__}", "--verify-tag"]
    assert {one.removeprefix("dist/") for one in created if one.startswith("dist/")} == {*sums, CHECKSUMS, SIGNATURE}
    assert (work / NOTES).is_file()


def test_package_index_gets_wheel_and_source_archive_alone(runner: Runner, tmp_path: Path) -> None:
    runner.run("python", tmp_path / "work")
    [given] = runner.inputs("python", "pypa/gh-action-pypi-publish")
    assert {path.name for path in (tmp_path / "work" / given["packages-dir"]).iterdir()} == PYTHON


def test_chart_comes_back_from_the_registry_as_it_was_built(runner: Runner, built: Path, tmp_path: Path) -> None:
    runner.run("publish", tmp_path / "work")
    reference = f"oci://{runner.registry.address}/policysched/charts/policysched"
    command = [str(helm()), "pull", reference, "--version", __version__, "--plain-http", "--destination", str(tmp_path)]
    pulled = subprocess.run(command, env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert pulled.returncode == 0, pulled.stderr
    chart = f"policysched-{__version__}.tgz"
    assert (tmp_path / chart).read_bytes() == (built / chart).read_bytes()
    with tarfile.open(tmp_path / chart) as archive:
        assert "policysched/Chart.yaml" in archive.getnames()


def test_changed_file_is_not_published(runner: Runner, tmp_path: Path) -> None:
    wheel = next((tmp_path / "work" / "dist").glob("*.whl"))
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    with pytest.raises(subprocess.CalledProcessError) as stopped:
        runner.run("publish", tmp_path / "work")
    assert "FAILED" in stopped.value.stdout
    assert runner.calls_file.read_text("utf-8") == ""
