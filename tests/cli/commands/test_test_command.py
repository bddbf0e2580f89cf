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
    assert "| tests.yaml:4:3 | bad | best nodes | none | n1 | n1 has " in command("test", "-o", "markdown").out
    assert "::error file=tests.yaml,line=4,col=3,title=bad::best nodes" in command("test", "-o", "github").out
    assert command("test", "--junit", "out.xml").code == 1
    assert "<testsuites" in (tmp_path / "out.xml").read_text("utf-8")
    assert json.loads(command("test", "--schema").out)["title"] == "Policy tests"


def test_a_broken_file_ends_with_two(command: Command, write: Write) -> None:
    write("tests.yaml", "- {given: a, expct: {}}")
    done = command("test")
    assert done.code == 2
    assert done.problem == "error: tests.yaml:1:14: unknown field `expct`; did you mean `expect`?\n"
    assert "::error file=tests.yaml,line=1,col=14::unknown field" in command("test", "-o", "github").out
    assert command("test", "none.yaml").problem == "error: none.yaml: no such file\n"
    assert command("test", "-k", "(").code == 2


@pytest.mark.usefixtures("tests")
def test_a_keyword_that_matches_no_test_is_an_error(command: Command) -> None:
    done = command("test", "-k", "goood")
    assert (done.code, done.problem) == (2, 'error: --keyword "goood" matches none of 2 tests\n')
    assert json.loads(command("test", "-k", "goood", "-o", "json").out)["problems"]


POLICY = """\
apiVersion: policysched.io/v1beta1
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
        "50 % of 1 policy covered, required: 100 %"
    )
    assert json.loads(command("test", "--coverage", "--mutate", "-o", "json").out)["coverage"] == 50.0
    assert "never false" in command("test", "--coverage", "-o", "markdown").out
    said = command("test", "--coverage", "--mutate", "-o", "github").out
    assert (
        "::warning file=policy.yaml,line=4,col=41,title=not covered::"
        "ready: spec.filters[0].require: node.ready never false" in said
    )
    assert "::warning file=policy.yaml,line=4,col=18,title=not noticed::ready: without ready" in said


def test_lines_say_what_is_not_covered_named_or_tried(command: Command, write: Write) -> None:
    write("policy.yaml", POLICY)
    write("tests.yaml", TESTS.replace("best: []", "best: [n1]") + "unreached: [{part: 'ready: x', reason: y}]\n")
    lines = command("test", "--coverage").out.splitlines()
    assert "ready (policy.yaml): 1 of 2 outcomes covered" in lines
    assert "`unreached` names a part that does not exist or is covered: ready: x" in lines
    write("tests.yaml", TESTS)
    assert "tests.yaml: mutation skipped: 1 test failed" in command("test", "--mutate").out.splitlines()
    write("policy.yaml", POLICY.replace("node.ready", "node.cordoned"))
    assert "      expected: none, because `rejected` is not given" in command("test").out.splitlines()


def test_what_a_test_gets_wrong_itself_is_no_failure(command: Command, write: Write) -> None:
    write("policy.yaml", POLICY)
    write("tests.yaml", TESTS + "- {given: odd, expect: {rejected: {raedy: [n1]}}}\n")
    done = command("test")
    assert done.code == 2
    assert done.out.splitlines() == [
        "tests.yaml: 1 of 3 passed", "  FAILED tests.yaml:4:3: bad", "    best nodes:", "      expected: none",
        "      got:      n1", done.out.splitlines()[5], "  ERROR tests.yaml:5:3: odd",
        "    tests.yaml:5:43: no rule `raedy`; did you mean `ready`?", "1 passed, 1 failed, 1 error in 1 file",
    ]  # fmt: skip
    told = json.loads(command("test", "-o", "json").out)
    assert (told["passed"], told["failed"], told["errors"]) == (1, 1, 1)
    assert [one["result"] for one in told["tests"]] == ["passed", "failed", "error"]
    said = command("test", "-o", "github").out
    assert "::error file=tests.yaml,line=5,col=43,title=odd::no rule `raedy`" in said
    assert "| tests.yaml:5:3 | odd | invalid test |" in command("test", "-o", "markdown").out


def test_policy_that_does_not_compile_is_shown_as_check_shows_it(command: Command, write: Write) -> None:
    write("policy.yaml", POLICY.replace("node.ready", "node.raedy"))
    write("tests.yaml", TESTS)
    write("more-tests.yaml", TESTS)
    done = command("test")
    assert (done.code, done.out) == (2, "0 passed, 2 problems in 2 files\n")
    block = command("check", "policy.yaml").out.rpartition("\n1 policy")[0]
    assert "^^^^^" in block
    assert done.problem == block + "\n"
    assert block.splitlines()[3] in command("test", "-o", "markdown").out
    assert "::error file=policy.yaml,line=4,col=46::E0202: " in command("test", "-o", "github").out
    [one, same] = json.loads(command("test", "-o", "json").out)["problems"]
    assert one == same
    assert one.startswith("policy.yaml:4:46: E0202: ")


@pytest.mark.parametrize("text", [TESTS, "- {given: a, expect: {best: []}}\n"])
@pytest.mark.parametrize("ask", [("check",), ("plan", "--cluster", "nodes.yaml", "--policy")])
def test_commands_on_policies_say_that_a_file_has_tests(
    command: Command, write: Write, ask: tuple[str, ...], text: str
) -> None:
    write("odd.yaml", text)
    write("nodes.yaml", "{kind: Node, apiVersion: v1, metadata: {name: n1}}")
    done = command(*ask, "odd.yaml")
    assert (done.code, done.out) == (2, "")
    assert "odd.yaml:1:1: this is a test file; run `policysched test odd.yaml`\n" in done.problem


@pytest.mark.parametrize(
    ("expectation", "problem"),
    [
        ("{ties: '2'}", "expected a whole number, got a text"),
        ("{total: {n1: many}}", "expected a number, got a text"),
        ("{best: n1}", "expected a list, got a text"),
        ("{rejected: [n1]}", "expected an object, got a list"),
        ("{result: Schedulable}", "got `Schedulable`; did you mean `"),
        ("{rejected: {raedy: [n1]}}", "no rule `raedy`; did you mean `ready`?"),
        ("{best: [m1]}", "no node `m1`; "),
        ("{nodes: {n1: {feasibel: true}}}", "unknown field `feasibel`; did you mean `feasible`?"),
    ],
)
def test_slips_in_tests_are_said_in_plain_words(command: Command, write: Write, expectation: str, problem: str) -> None:
    write("policy.yaml", POLICY)
    write("tests.yaml", f"cluster: {{nodes: [{{name: n1}}]}}\ntests:\n- {{given: a, expect: {expectation}}}\n")
    done = command("test")
    assert done.code == 2
    assert problem in done.out + done.problem
    assert "tests.yaml:3:" in done.out + done.problem


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

    monkeypatch.setattr("policysched.cli.commands.policies.test.time.sleep", change)
    done = command("test", "--watch")
    assert done.code == 0
    assert [line for line in done.out.splitlines() if " in 1 file" in line] == [
        "1 passed, 1 failed in 1 file", "0 passed, 1 problem in 1 file", "2 passed in 1 file",
    ]  # fmt: skip
