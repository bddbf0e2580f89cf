"""Folders with a policy and tests, and what running them gives."""

from __future__ import annotations

import textwrap
from pathlib import Path

from policysched.app.checking.explain import as_policy
from policysched.app.policy_tests.reading import read_tests
from policysched.app.policy_tests.running import PolicyTestOptions, PolicyTestResult, load_tests, run_test
from policysched.visible import visible_json

SPEC = """\
filters:
- {name: big, require: node.allocatable.cpu > 2, message: too small}
- {name: fresh, require: 'node.labels["x"] != "old" and number(node.labels["n"] ?? "1") < 5'}
scores:
- {name: even, value: 50}
"""
CLUSTER = """\
cluster:
  nodes:
  - {name: n1, allocatable: {cpu: 2}}
  - {name: n2}
  - {name: n3, taints: ['only=me:NoSchedule']}
"""


def write_tests(folder: Path, tests: str, spec: str = SPEC, name: str = "tests.yaml") -> Path:
    """Write a policy called `policy` and tests of it."""
    (folder / "policy.yaml").write_text(visible_json(as_policy(spec) | {"metadata": {"name": "policy"}}), "utf-8")
    path = folder / name
    path.write_text(textwrap.dedent(tests), "utf-8")
    return path


def results(folder: Path, tests: str, spec: str = SPEC) -> list[PolicyTestResult]:
    """Run tests of a policy."""
    return [run_test(one, PolicyTestOptions()) for one in load_tests(read_tests(write_tests(folder, tests, spec)))]


def result_of(folder: Path, expect: str, spec: str = SPEC) -> PolicyTestResult:
    """Run one test of a pod that asks for nothing on `CLUSTER`."""
    [found] = results(folder, f"{CLUSTER}tests:\n- given: a pod\n  expect: {expect}\n", spec)
    return found
