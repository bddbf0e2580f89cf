"""What the image holds: locked wheels, the project, and nothing that built it. It is run from an empty folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from tests.deploy.image import IMAGE_PYTHON, LOCKS, ROOT, Image, build, stages, wheels

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ASKED = [*zip(LOCKS, (PROJECT["project"]["dependencies"], PROJECT["build-system"]["requires"]), strict=True)]
STRANGER = (
    "setpriv", "--reuid=1000680000", "--regid=0", "--clear-groups",
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
)  # fmt: skip
"""Starts a program as a user without a name and without own files, who reads folders of root but writes nowhere."""
PINNED = re.compile(r"^([\w.-]+)==(\S+?)(?: ; (.*?))? \\$", re.MULTILINE)


def locked(name: str, python: str) -> dict[str, str]:
    """Give the versions that a lock file has for a version of Python on Linux."""
    linux = {"sys_platform": "linux", "platform_system": "Linux"}
    here = {key: str(value) for key, value in default_environment().items()} | linux
    here |= {"python_version": python, "python_full_version": f"{python}.1"}
    text = (ROOT / name).read_text("utf-8")
    found = [
        Requirement(f"{one}=={version}" + (f" ; {marker}" if marker else ""))
        for one, version, marker in PINNED.findall(text)
    ]
    assert len(found) == len(re.findall("==", re.sub(r";.*", "", text))), "every line was read"
    kept = [one for one in found if one.marker is None or one.marker.evaluate(here)]
    return {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in kept}


@pytest.mark.parametrize("python", ["3.11", "3.12", IMAGE_PYTHON])
@pytest.mark.parametrize(("lock", "asked"), ASKED, ids=LOCKS)
def test_lock_satisfies_what_the_project_asks_for(lock: str, asked: list[str], python: str) -> None:
    versions = locked(lock, python)
    for requirement in map(Requirement, asked):
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_lock_that_is_too_old_is_noticed() -> None:
    assert locked(LOCKS[0], "3.13")["lark"] not in Requirement("lark>=1000").specifier


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_locked_wheel_is_there_for_the_image_s_machines(machine: str) -> None:
    found = {str(parse_wheel_filename(path.name)[0]) for path in wheels(machine).glob("*.whl")}
    assert found == {str(name) for lock in LOCKS for name in locked(lock, IMAGE_PYTHON)}


def test_base_is_the_same_in_both_stages_and_told_by_its_digest() -> None:
    bases = {rest.split()[0] for stage in stages() for word, rest in stage if word == "FROM"}
    [base] = bases
    assert re.fullmatch(rf"python:{re.escape(IMAGE_PYTHON)}\.\d+-slim-\w+@sha256:[0-9a-f]{{64}}", base)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """The image, built once."""
    yield build(tmp_path_factory.mktemp("image"))


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    made = tmp_path / "empty"
    made.mkdir()
    return made


def test_image_holds_what_is_locked_and_the_project_alone(image: Image) -> None:
    [packages] = image.path("/opt/policysched/lib").glob("python*/site-packages")
    command = [
        sys.executable,
        "-m",
        "pip",
        "list",
        f"--path={packages}",
        "--format=json",
        "--disable-pip-version-check",
    ]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {canonicalize_name(one["name"]): one["version"] for one in listed}
    assert found == locked(LOCKS[0], here) | {"policysched": PROJECT["project"]["version"]}


def test_image_runs_from_an_empty_folder(image: Image, empty: Path) -> None:
    assert image.command == ["run"]
    version = image.run("version", cwd=empty)
    assert (version.returncode, version.stderr) == (0, "")
    assert PROJECT["project"]["version"] in version.stdout
    helped = image.run("--help", cwd=empty)
    assert helped.returncode == 0
    assert "dry-run" in helped.stdout


def test_image_checks_and_dry_runs_a_policy(image: Image, empty: Path) -> None:
    example = ROOT / "examples" / "tour" / "01-tonodename"
    checked = image.run("check", str(example / "policy.yaml"), cwd=empty)
    assert (checked.returncode, checked.stdout.split(";")[0]) == (0, "1 policy: 0 errors, 0 warnings\n"), checked.stderr
    given = {"cluster": "cluster.yaml", "policy": "policy.yaml", "pod": "deployment.yaml"}
    tried = image.run("dry-run", *(f"--{flag}={example / file}" for flag, file in given.items()), cwd=empty)
    assert tried.returncode == 0, tried.stderr
    assert "→ node piworknode001" in tried.stdout
    assert list(empty.iterdir()) == []


def test_image_plans_on_the_cluster_of_the_tutorial(image: Image, empty: Path) -> None:
    written = image.run("example", "tutorial", cwd=empty)
    assert (written.returncode, written.stderr) == (0, "")
    folder = empty / "tutorial"
    assert (folder / "cluster.yaml").read_bytes() == (ROOT / "examples" / "tutorial" / "cluster.yaml").read_bytes()
    planned = image.run("plan", "--cluster=cluster.yaml", "--policy=policy.yaml", "-o", "json", cwd=folder)
    assert (planned.returncode, planned.stderr) == (1, "")
    assert json.loads(planned.stdout)["pods"] == 400


@pytest.fixture
def stranger() -> tuple[str, ...]:
    """What starts a program as a user of no image; empty if only this user can start programs, who is one too."""
    allowed = os.geteuid() == 0 and shutil.which(STRANGER[0])
    works = allowed and subprocess.run([*STRANGER, "true"], check=False, capture_output=True).returncode == 0
    return STRANGER if works else ()


def test_image_runs_as_a_user_without_a_name_or_own_files(image: Image, empty: Path, stranger: tuple[str, ...]) -> None:
    files = [path for path in image.path("/opt/policysched").rglob("*") if not path.is_symlink()]
    assert [path for path in files if not path.stat().st_mode & 0o004] == []
    done = image.run("demo", cwd=empty, under=stranger)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "web-hdd runs on piworknode003" in done.stdout
    assert list(empty.iterdir()) == []


def test_image_s_command_wants_a_cluster(image: Image, empty: Path) -> None:
    done = image.run(cwd=empty)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "service account" in done.stderr or "kubeconfig" in done.stderr
