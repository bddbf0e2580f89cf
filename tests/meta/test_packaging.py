"""What a wheel and an image are built from is there."""

from __future__ import annotations

import importlib
import re
import tomllib
from typing import Any

import pytest

from policysched import __version__
from tests.meta.markdown import ROOT

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
    return {"pyproject.toml", PROJECT["project"]["readme"], *WHEEL["packages"], *sources}


def test_image_takes_all_that_the_wheel_needs() -> None:
    assert _copied() >= _needed() | {"LICENSE"}
    assert {name for name in _copied() if not (ROOT / name).exists()} == set()


def test_wheel_carries_files_that_exist() -> None:
    assert all((ROOT / path).is_file() for path in WHEEL["force-include"])
    assert (ROOT / "policysched" / "py.typed").is_file()


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
