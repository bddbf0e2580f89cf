"""JUnit XML of a test run, for build servers.

One `testsuite` per file, one `testcase` per test; a test that could not run is an `error`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as Xml

from policysched.app.files.output import write_in_place
from policysched.app.policy_tests.running import PolicyTestResult
from policysched.app.policy_tests.suite import PolicyTestRun
from policysched.errors import UsageError
from policysched.reading.files import why
from policysched.visible import visible_lines


def write_junit(run: PolicyTestRun, path: Path) -> None:
    """Write a run to a file as JUnit XML.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        write_in_place(path, junit(run).encode())
    except OSError as error:
        raise UsageError(f"{path}: {why(error)}") from error


def junit(run: PolicyTestRun) -> str:
    """Return a run as JUnit XML."""
    root = Xml.Element("testsuites", _counts(run.results, errors=len(run.problems)) | {"name": "policysched"})
    for file, results in groupby(run.results, lambda one: one.file):
        tests = list(results)
        suite = Xml.SubElement(root, "testsuite", {"name": file, **_counts(tests)})
        for one in tests:
            _add_test(suite, one)
    if run.problems:
        suite = Xml.SubElement(root, "testsuite", {"name": "files", **_counts((), errors=len(run.problems))})
        for problem in run.problems:
            case = Xml.SubElement(suite, "testcase", {"name": problem, "classname": "files"})
            Xml.SubElement(case, "error", {"message": problem})
    _make_visible(root)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _counts(results: Iterable[PolicyTestResult], errors: int = 0) -> dict[str, str]:
    tests = list(results)
    broken = sum(bool(one.problem) for one in tests)
    failures = sum(not one.passed for one in tests) - broken
    return {"tests": str(len(tests) + errors), "failures": str(failures), "errors": str(broken + errors)}


def _add_test(suite: Xml.Element, one: PolicyTestResult) -> None:
    place = {"file": one.file, "line": str(one.line)} if one.line else {}
    case = Xml.SubElement(suite, "testcase", {"name": one.given, "classname": one.file, **place})
    if one.problem:
        Xml.SubElement(case, "error", {"message": one.problem})
    elif one.differences:
        lines = [line for found in one.differences for line in found.lines()]
        message = ", ".join(found.what for found in one.differences)
        Xml.SubElement(case, "failure", {"message": message}).text = "\n".join(lines)


def _make_visible(root: Xml.Element) -> None:
    """Escape characters that XML does not allow, for example in names of files."""
    for one in root.iter():
        one.attrib = {name: visible_lines(value) for name, value in one.attrib.items()}
        one.text = one.text and visible_lines(one.text)
