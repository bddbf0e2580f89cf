"""Files of tests of policies are tests of pytest, too."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from tests.app.policy_tests.folders import CLUSTER, write_tests
from tools.documents.markdown import ROOT

TESTS = (
    CLUSTER
    + """\
tests:
- {given: good, expect: {rejected: {big: [n1]}}}
- {given: bad, expect: {best: [n3]}}
"""
)


def pytest_says(folder: Path, *arguments: str) -> str:
    """Run pytest with the plugin in a folder, and return what it prints."""
    # Where the distribution was installed anew the plugin is loaded by its name, and then not a second time.
    plugin = ("-p", "no:policysched", "-p", "policysched.pytest_plugin", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *plugin, "-q", "--rootdir", str(folder), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout + done.stderr


def test_the_documented_name_is_collected_and_failures_show_differences(tmp_path: Path) -> None:
    write_tests(tmp_path, TESTS, name="policy-tests.yaml")
    write_tests(tmp_path, TESTS)
    said = pytest_says(tmp_path)
    assert "1 failed, 1 passed" in said
    assert "expected: n3" in said
    assert "policy-tests.yaml::bad" in said
    assert "Traceback" not in said


def test_the_ini_option_names_other_files_and_a_broken_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\npolicysched_tests = tests.yaml\n", "utf-8")
    write_tests(tmp_path, TESTS)
    write_tests(tmp_path, "- {given: a, expct: {}}", name="a-policy-tests.yaml")
    said = pytest_says(tmp_path, "--continue-on-collection-errors", "-k", "good or bad")
    assert "1 failed, 1 passed, 1 error" in said
    assert "a-policy-tests.yaml:1:14: unknown field `expct`; did you mean `expect`?" in said


def test_the_ini_option_chooses_the_kubernetes_minor(tmp_path: Path) -> None:
    write_tests(tmp_path, TESTS, name="policy-tests.yaml")
    (tmp_path / "pytest.ini").write_text("[pytest]\npolicysched_kube_version = 1.37\n", "utf-8")
    assert "1 failed, 1 passed" in pytest_says(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\npolicysched_kube_version = 1.34\n", "utf-8")
    said = pytest_says(tmp_path)
    assert "2 failed" in said
    assert 'Kubernetes version "1.34" is not one of auto, 1.36, 1.37, 1.38' in said


@pytest.mark.parametrize("group", ["pytest11"])
def test_the_distribution_names_the_plugin(group: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"][group] == {"policysched": "policysched.pytest_plugin"}
    assert import_module(project["entry-points"][group]["policysched"]).pytest_collect_file
