"""Runs of many files, and what they are for programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from policysched.app.policy_tests.junit import junit, write_junit
from policysched.app.policy_tests.reading import find_files
from policysched.app.policy_tests.running import PolicyTestOptions
from policysched.app.policy_tests.suite import PolicyTestRun, RunChoices, keyword, run_files
from policysched.errors import UsageError
from tests.app.policy_tests.folders import write_tests

TESTS = """\
cluster: {nodes: [{name: n1}]}
tests:
- {given: good one, expect: {best: [n1]}}
- {given: bad one, expect: {best: []}}
- {given: lost one, expect: {best: [n2]}}
- {given: good too, expect: {best: [n1]}}
"""


def ran(folder: Path, choices: RunChoices) -> PolicyTestRun:
    """Run a file of four tests and a broken one."""
    write_tests(folder, TESTS)
    (folder / "z-tests.yaml").write_text("- 3", "utf-8")
    return run_files(find_files([str(folder)]), PolicyTestOptions(), choices)


def test_a_broken_file_keeps_no_other_from_being_run(tmp_path: Path) -> None:
    run = ran(tmp_path, RunChoices())
    assert run.summary() == "2 passed, 1 failed, 1 error, 1 problem in 2 files"
    assert run.problems == [f"{tmp_path}/z-tests.yaml:1:3: expected an object, got a whole number"]
    assert [one["result"] for one in run.to_dict()["tests"]] == ["passed", "failed", "error", "passed"]
    assert run.exit_code == 2


def test_the_first_failure_ends_a_fast_run(tmp_path: Path) -> None:
    run = ran(tmp_path, RunChoices(fail_fast=True))
    assert (len(run.results), run.left_out) == (2, 2)


def test_an_interruption_ends_a_run_with_what_is_known(tmp_path: Path) -> None:
    def interrupt(name: str) -> None:
        if "lost" in name:
            raise KeyboardInterrupt

    run = ran(tmp_path, RunChoices(on_test=interrupt))
    assert (run.interrupted, len(run.results), run.exit_code) == (True, 2, 130)
    assert run.summary().startswith("interrupted: 1 passed, 1 failed")


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("good", ["good one", "good too"]),
        ("not good", ["bad one", "lost one"]),
        ("one and not (bad or LOST)", ["good one"]),
        ("bad or lost and one", ["bad one", "lost one"]),
        ("good and too", ["good too"]),
    ],
)
def test_a_keyword_expression_chooses_by_parts_of_names(expression: str, chosen: list[str]) -> None:
    names = ["good one", "bad one", "lost one", "good too"]
    assert [one for one in names if keyword(expression)(one)] == chosen


@pytest.mark.parametrize("expression", ["", " ", "and", "a and", "(a", "a)", "not", "a b", "or a", "()"])
def test_what_is_no_keyword_expression_is_refused(expression: str) -> None:
    with pytest.raises(UsageError, match="is not parts of names"):
        keyword(expression)


def test_junit_has_every_test_and_why_it_failed(tmp_path: Path) -> None:
    run = ran(tmp_path, RunChoices())
    root = Xml.fromstring(junit(run))  # noqa: S314 - of our own making
    assert root.attrib == {"name": "policysched", "tests": "5", "failures": "1", "errors": "2"}
    cases = {case.attrib["name"]: case for case in root.iter("testcase")}
    failure = cases["bad one"].find("failure")
    assert failure is not None
    assert failure.attrib["message"] == "best nodes"
    assert "got:      n1" in str(failure.text)
    assert cases["lost one"].find("error") is not None
    assert cases["good one"].attrib["line"] == "3"
    write_junit(run, tmp_path / "junit.xml")
    with pytest.raises(UsageError, match="no such file"):
        write_junit(run, tmp_path / "none" / "junit.xml")


def test_junit_holds_no_character_that_xml_may_not_hold(tmp_path: Path) -> None:
    run = ran(tmp_path, RunChoices())
    odd = [replace(one, file="a\x01b\x1b[31m\udcff-tests.yaml", given="\ufffe]]>&<") for one in run.results]
    problems = ["\udcff\x00: cannot be read"]
    write_junit(replace(run, results=odd, problems=problems), tmp_path / "junit.xml")
    root = Xml.fromstring((tmp_path / "junit.xml").read_text("utf-8"))  # noqa: S314 - of our own making
    shown = "a\\x01b\\x1b[31m\\udcff-tests.yaml"
    assert {case.attrib["classname"] for case in root.iter("testcase")} == {shown, "files"}
