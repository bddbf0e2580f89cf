"""What a wheel and an image are built from is there."""

from __future__ import annotations

import email
import importlib
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from policysched import __version__
from policysched.cli import execute
from tools.documents.markdown import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WHEEL: dict[str, Any] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def _copied() -> set[str]:
    """What the image's build stage takes from the context."""
    stage = DOCKERFILE.split("\nFROM ")[0]
    copies = re.findall(r"^COPY (?!--from)(.*)$", stage, re.MULTILINE)
    return {name for line in copies for name in line.split()[:-1]}


def _needed() -> set[str]:
    """What building the wheel reads."""
    sources = {path.partition("/")[0] for path in WHEEL["force-include"]}
    fragments = {one["path"] for one in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["fragments"]}
    return {"pyproject.toml", *PROJECT["project"]["license-files"], *fragments, *WHEEL["packages"], *sources}


def test_image_takes_all_that_the_wheel_needs() -> None:
    assert _copied() >= _needed()
    assert {name for name in _copied() if not (ROOT / name).exists()} == set()


def test_wheel_carries_files_that_exist() -> None:
    assert all((ROOT / path).exists() for path in WHEEL["force-include"])
    assert (ROOT / "policysched" / "py.typed").is_file()


def test_description_renders_on_a_package_index(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(wheel)], check=False, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    assert metadata["Author"] == "The policysched authors"
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert "https://raw.githubusercontent.com/policysched/policysched/main/docs/picture.svg" in text
    assert "https://github.com/policysched/policysched/blob/main/docs/start/tutorial.md" in text
    assert re.findall(r"\]\((?!https?:|#)", text) == []


def test_wheel_and_source_archive_have_the_examples(tmp_path: Path) -> None:
    files = {
        str(one.relative_to(ROOT))
        for one in (ROOT / "examples").glob("*/**/*")
        if one.is_file() and "__pycache__" not in one.parts
    }
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path))
    data = "policysched/data/"
    with zipfile.ZipFile(wheel) as archive:
        assert {one.removeprefix(data) for one in archive.namelist() if one.startswith(f"{data}examples/")} == files
    [source] = SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(source) as archive:
        names = {one.partition("/")[2] for one in archive.getnames()}
    assert names >= files | {"crds/schedulingpolicies.yaml", "policysched/cli/__init__.py"}


def test_image_runs_the_project_s_command_without_privileges() -> None:
    last = DOCKERFILE.split("\nFROM ")[-1]
    [command] = re.findall(r'^ENTRYPOINT \["([\w-]+)"\]$', last, re.MULTILINE)
    assert command in PROJECT["project"]["scripts"]
    [user] = re.findall(r"^USER (\d+):\d+$", last, re.MULTILINE)
    assert int(user) > 0


@pytest.mark.parametrize("target", PROJECT["project"]["scripts"].values())
def test_scripts_can_be_called(target: str) -> None:
    module, _, name = target.partition(":")
    assert callable(getattr(importlib.import_module(module), name))


def test_licence_is_the_one_that_is_declared() -> None:
    assert PROJECT["project"]["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text


def test_changelog_tells_of_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## (Unreleased|\[?{re.escape(__version__)})", text, re.MULTILINE)
    assert __version__ == PROJECT["project"]["version"]


def test_python_of_the_image_is_one_the_project_runs_on() -> None:
    least = tuple(int(part) for part in PROJECT["project"]["requires-python"].removeprefix(">=").split("."))
    versions = re.findall(r"python:(\d+)\.(\d+)", DOCKERFILE)
    assert versions
    assert all((int(major), int(minor)) >= least for major, minor in versions)


HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
"""What pre-commit reads of this repository; its schema says which keys there are."""


def test_hooks_have_the_shape_that_pre_commit_reads() -> None:
    assert [hook["id"] for hook in HOOKS] == ["policysched-check", "policysched-fmt"]
    for hook in HOOKS:
        assert set(hook) == {"id", "name", "description", "entry", "language", "types_or"}
        assert hook["language"] == "python"
        assert hook["types_or"] == ["yaml", "json"]
        assert all(isinstance(hook[key], str) for key in ("id", "name", "description", "entry"))


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: str(hook["id"]))
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('appliesTo: pod.name == "a"', 0),
        ("appliesTo: pod.name ==", 1),
        (None, 0),
    ],
)
def test_hooks_run_on_the_files_that_they_are_given(
    hook: dict[str, Any], text: str | None, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "template.yaml").write_text("{{- range .Values }}\n", "utf-8")
    head = "apiVersion: policysched.io/v1beta1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n"
    (tmp_path / "policy.yaml").write_text(f"{head}  {text}\n" if text else "kind: Pod\n", "utf-8")
    program, *arguments = hook["entry"].split()
    assert program in PROJECT["project"]["scripts"]
    assert execute([*arguments, "template.yaml", "policy.yaml"]) == code


def test_the_hook_that_formats_does() -> None:
    [entry] = [hook["entry"] for hook in HOOKS if hook["id"] == "policysched-fmt"]
    assert "--check" not in entry
    assert "--diff" not in entry
