"""`policysched.testing.run`: tests of policies from Python, with typed results."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysched.errors import UsageError
from policysched.testing import run
from tests.app.policy_tests.folders import write_tests

VALUE = {
    "cluster": {"nodes": [{"name": "n1"}, {"name": "n2", "cordoned": True}]},
    "tests": [{"given": "a pod", "expect": {"best": ["n1"]}}, {"given": "another", "expect": {"best": ["n2"]}}],
}


def test_a_value_is_run_without_files() -> None:
    found = run(VALUE)
    assert [one.passed for one in found.results] == [True, False]
    [difference] = found.results[1].differences
    assert (difference.what, difference.expected, difference.got) == ("best nodes", "n2", "n1")
    assert not found.passed


def test_a_path_is_run_with_coverage_and_mutation(tmp_path: Path) -> None:
    tests = "cluster: {nodes: [{name: n1}]}\ntests: [{given: a, expect: {result: Scheduled}}]"
    path = write_tests(tmp_path, tests, "filters: [{name: a, require: node.ready}]")
    for given in (path, str(tmp_path)):
        found = run(given, coverage=True, mutate=True)
        assert found.covered == 50.0
        assert found.mutation[0].unnoticed == ["policy: without a"]


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown field `tsts`"):
        run({"tsts": []})
    for missing in (tmp_path / "nope.yaml", str(tmp_path / "nope")):
        with pytest.raises(UsageError, match=r"nope(\.yaml)?: no such file"):
            run(missing)
    path = write_tests(tmp_path, "- 3")
    assert run(path).problems == [f"{path}:1:3: expected an object, got a whole number"]
