"""A new plugin's package: its files, its test that passes, and that it is found once it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

from policysched.app.plugins.package import DEFAULT_POINTS, new_package
from policysched.app.plugins.templates import TEMPLATES
from policysched.errors import UsageError
from tools.documents.markdown import ROOT


def ran(*command: str | Path, cwd: Path) -> str:
    """Run a program that must succeed, with this package to import; give what it prints."""
    variables = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [str(one) for one in command], cwd=cwd, env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_tests_of_new_plugins_pass(tmp_path: Path) -> None:
    """With the default points, with each of the others alone, and with all of them."""
    wanted = {"default": DEFAULT_POINTS, "every": tuple(TEMPLATES)} | {f"only{one}": (one,) for one in TEMPLATES}
    packages = [new_package(f"Plugin-{name}", points, tmp_path) for name, points in wanted.items()]
    for one in packages:
        assert set(one.files) == {file.name for file in one.folder.iterdir()}
    said = ran(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".", cwd=tmp_path)
    assert " passed" in said
    ruff, plain = Path(sys.prefix, "bin", "ruff"), ("--no-cache", "--isolated", "--line-length=120")
    ran(
        Path(sys.prefix, "bin", "mypy"),
        "--strict",
        "--cache-dir",
        tmp_path / "types",
        *tmp_path.glob("*/*.py"),
        cwd=tmp_path,
    )
    for one in packages:
        ran(ruff, "check", *plain, ".", cwd=one.folder)
        ran(ruff, "format", *plain, "--check", ".", cwd=one.folder)


def test_entry_point_names_the_class(tmp_path: Path) -> None:
    made = new_package("node.group_2x", DEFAULT_POINTS, tmp_path)
    project = tomllib.loads((made.folder / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == "node-group-2x"
    assert project["optional-dependencies"] == {"test": ["policysched[testing]"]}
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert ours["testing"] == ["pytest>=8.3"]
    assert project["entry-points"] == {"policysched.plugins": {"node.group_2x": "node_group_2x:NodeGroup2x"}}


@pytest.mark.parametrize(
    ("name", "points", "why"),
    [
        ("", ["filter"], 'invalid plugin name "": '),
        ("../up", ["filter"], 'invalid plugin name "../up": '),
        ("9lives", ["filter"], 'invalid plugin name "9lives": '),
        ("a" * 64, ["filter"], f'invalid plugin name "{"a" * 64}": '),
        ("class", ["filter"], 'invalid plugin name "class": class is '),
        ("json", ["filter"], 'invalid plugin name "json": json is '),
        ("policysched", ["filter"], "policysched is "),
        ("NodeName", ["filter"], 'plugin "NodeName" already exists'),
        ("mine", [], "no extension point given; use preEnqueue, "),
        ("mine", ["filter", "sort"], 'unknown extension point "sort"; use preEnqueue, queueSort, preFilter, '),
        ("taken", ["filter"], "taken already exists; nothing was written"),
    ],
)
def test_package_that_cannot_be_made_is_refused(name: str, points: list[str], why: str, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(UsageError) as caught:
        new_package(name, points, tmp_path)
    assert why in str(caught.value)
    assert [one.name for one in tmp_path.rglob("*")] == ["taken"]


def test_package_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as caught:
        new_package("mine", ["filter"], tmp_path / "file")
    assert str(caught.value) == f'"{tmp_path}/file" is a file; name a folder'


def test_installed_plugin_is_found_configured_and_decides(tmp_path: Path) -> None:
    """In a fresh virtual environment that has what this one has, so that nothing is fetched."""
    made = new_package("node-group", DEFAULT_POINTS, tmp_path)
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    site = Path(ran(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    (site / "beside.pth").write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")
    [install, test] = (one.partition("#")[0].strip() for one in made.next_steps[1:3])
    assert (install, test) == ("pip install --editable '.[test]'", "python -m pytest")
    offline = ("-q", "--no-index", "--no-build-isolation")
    ran(python, "-m", "pip", "install", *offline, ".[test]", cwd=made.folder)
    assert " passed" in ran(python, "-m", "pytest", "-q", cwd=made.folder)

    command = (python, "-c", "from policysched.cli import main; main()")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    listed = json.loads(ran(*command, "plugins", "-o", "json", cwd=elsewhere))["items"]
    origin = "entry point node-group of node-group 0.1.0"
    assert {"name": "node-group", "points": ["filter", "score"], "origin": origin} in listed
    files = {flag: made.folder / f"{name}.yaml" for flag, name in FILES.items()}
    asked = [part for flag, file in files.items() for part in (flag, file)]
    record = json.loads(ran(*command, "dry-run", *asked, "-o", "json", cwd=elsewhere))
    assert record["schedulerName"] == "node-group-scheduler"
    assert record["selected"] == "a-1"
    rejected = record["rejected"]["b-1"]
    assert (rejected["plugin"], rejected["reasons"]) == ("node-group", ["node(s) did not have example.io/group=a"])
    assert record["scores"]["a-1"]["node-group"] == 100


FILES = {"--config": "scheduler-config", "--cluster": "cluster", "--pod": "pod"}
