from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Command, Write

TESTS = """\
cluster: {nodes: [{name: n1}]}
tests:
- {given: good, expect: {best: [n1]}}
- {given: bad, expect: {best: []}}
"""


@pytest.fixture
def tests(write: Write) -> None:
    write("tests.yaml", TESTS)


@pytest.mark.usefixtures("tests")
def test_failures_are_told_with_their_place_and_end_with_one(command: Command) -> None:
    done = command("test")
    assert done.code == 1
    assert done.out.splitlines()[:4] == [
        "tests.yaml: 1 of 2 passed", "  FAILED tests.yaml:4:3: bad", "    best nodes:", "      expected: none",
    ]  # fmt: skip
    assert done.out.splitlines()[-1] == "1 passed, 1 failed in 1 file"
    assert command("test", "-k", "good").code == 0
    assert command("test", "tests.yaml", "--fail-fast", "-k", "good or bad").code == 1


@pytest.mark.usefixtures("tests")
def test_programs_and_reviewers_get_their_formats(command: Command, tmp_path: Path) -> None:
    assert json.loads(command("test", "-o", "json").out) == yaml.safe_load(command("test", "-o", "yaml").out)
    assert "| tests.yaml | bad | best nodes | none | n1 |" in command("test", "-o", "markdown").out
    assert "::error file=tests.yaml,line=4,col=3,title=bad::best nodes" in command("test", "-o", "github").out
    assert command("test", "--junit", "out.xml").code == 1
    assert "<testsuites" in (tmp_path / "out.xml").read_text("utf-8")
    assert json.loads(command("test", "--schema").out)["title"] == "Tests of scheduling policies"


def test_a_broken_file_ends_with_two(command: Command, write: Write) -> None:
    write("tests.yaml", "- {given: a, expct: {}}")
    done = command("test")
    assert done.code == 2
    assert done.problem == "error: tests.yaml:1:14: unknown field `expct`; did you mean `expect`?\n"
    assert "::error::tests.yaml:1:14" in command("test", "-o", "github").out
    assert command("test", "none.yaml").problem == "error: none.yaml: there is no such file\n"
    assert command("test", "-k", "(").code == 2


POLICY = """\
apiVersion: policysched.io/v1alpha1
kind: SchedulingPolicy
metadata: {name: ready}
spec: {filters: [{name: ready, require: node.ready}]}
"""


def test_coverage_and_mutation_are_told_in_all_formats(command: Command, write: Write) -> None:
    write("policy.yaml", POLICY)
    write("tests.yaml", TESTS.replace("best: []", "best: [n1]"))
    lines = command("test", "--coverage", "--mutate").out.splitlines()
    assert "    ^^^^^^^^^^ never false" in lines
    assert "  not noticed: ready: without ready" in lines
    assert command("test", "--coverage").code == 0
    assert command("test", "--min-coverage", "100").out.splitlines()[-2] == (
        "50 % of 1 policy covered, and 100 % are needed"
    )
    assert json.loads(command("test", "--coverage", "--mutate", "-o", "json").out)["coverage"] == 50.0
    assert "never false" in command("test", "--coverage", "-o", "markdown").out
    said = command("test", "--coverage", "--mutate", "-o", "github").out
    assert (
        "::warning file=policy.yaml,title=not covered::ready: spec.filters[0].require: node.ready never false" in said
    )
    assert "::warning file=tests.yaml,title=not noticed::ready: without ready" in said


@pytest.mark.usefixtures("tests")
def test_watching_runs_again_after_a_change_until_it_is_interrupted(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = iter(["- broken: [", TESTS.replace("best: []", "best: [n1]")])

    def change(_: float) -> None:
        text = next(texts, None)
        if text is None:
            raise KeyboardInterrupt
        (tmp_path / "tests.yaml").write_text(text, "utf-8")

    monkeypatch.setattr("policysched.cli.commands.test.time.sleep", change)
    done = command("test", "--watch")
    assert done.code == 0
    assert [line for line in done.out.splitlines() if " in 1 file" in line] == [
        "1 passed, 1 failed in 1 file", "0 passed, 1 broken in 1 file", "2 passed in 1 file",
    ]  # fmt: skip
