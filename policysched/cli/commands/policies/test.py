"""`policysched test`: runs the tests of policies."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Final

from policysched.app.plugins.discovery import configurable_plugins
from policysched.app.policy_tests.file_format import json_schema
from policysched.app.policy_tests.junit import write_junit
from policysched.app.policy_tests.reading import find_files
from policysched.app.policy_tests.running import PolicyTestOptions, PolicyTestResult
from policysched.app.policy_tests.suite import PolicyTestRun, RunChoices, run_files
from policysched.app.policy_tests.suite import keyword as chosen_by
from policysched.app.policy_tests.watching import watch
from policysched.cli.flags.formats import OutputFormat
from policysched.cli.flags.policies import TestFlags
from policysched.cli.formats import markdown_table, markdown_text, placed_error, print_document, workflow_command
from policysched.cli.output import INTERRUPTED, count, print_command, print_error, print_json, print_text
from policysched.cli.rich_output import print_finding, working
from policysched.errors import UsageError
from policysched.model.release_choice import release_named
from policysched.reading.positions import SourcePosition
from policysched.visible import visible

PAUSE: Final = 0.3
"""Interval between checks for changed files. Units: seconds."""


def test(flags: TestFlags) -> int:
    """Run policy tests and print the results; return the exit code."""
    if flags.schema:
        print_json(json_schema())
        return 0
    choices = RunChoices(
        chosen_by(flags.keyword) if flags.keyword is not None else lambda _: True,
        flags.fail_fast,
        coverage=flags.coverage or flags.min_coverage is not None,
        least_coverage=flags.min_coverage or 0.0,
        mutate=flags.mutate,
    )
    names = flags.paths or ["."]

    def once() -> int:
        return _run_once(flags, names, choices)

    return _watch(names, once) if flags.watch else once()


def _run_once(flags: TestFlags, names: list[str], choices: RunChoices) -> int:
    end = time.monotonic() + flags.mutate_seconds
    run = _run(flags, names, replace(choices, in_time=lambda: time.monotonic() < end))
    if run.left_out and not (run.results or run.problems or run.interrupted):
        run.problems.append(f'--keyword "{flags.keyword}" matches none of {count(run.left_out, "test")}')
    _print(run, flags.output)
    if flags.junit is not None:
        write_junit(run, flags.junit)
    return run.exit_code


def _watch(names: list[str], once: Callable[[], int]) -> int:
    """Run tests at each change of a file; return the exit code of the last run."""
    code = 0

    def run() -> None:
        nonlocal code
        try:
            code = once()
        except UsageError as error:
            print_error(error)
            code = 2
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        print_text("waiting for changes; Ctrl-C stops")

    with suppress(KeyboardInterrupt):
        watch(names, run, lambda: time.sleep(PAUSE))
    return code


def _run(flags: TestFlags, paths: list[str], choices: RunChoices) -> PolicyTestRun:
    known = configurable_plugins(flags.plugin, None)
    release = release_named(flags.kube_version)
    options = PolicyTestOptions(known.registry, kube_version=release.minor)
    files = find_files(paths)
    with working("running tests") as show:
        return run_files(files, options, replace(choices, on_test=show))


def _print(run: PolicyTestRun, output: OutputFormat) -> None:
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        print_document("TestRun", run.to_dict(), output)
    elif output is OutputFormat.MARKDOWN:
        _print_markdown(run)
    elif output is OutputFormat.GITHUB:
        _print_annotations(run)
    else:
        _print_lines(run)
    _print_problems(run, with_text=output in {OutputFormat.TABLE, OutputFormat.WIDE})


def _print_problems(run: PolicyTestRun, *, with_text: bool) -> None:
    """Print each problem of files once on stderr; `with_text` adds the source lines of policies that do not compile."""
    texts = {str(broken): [one.text() for one in broken.errors] for broken in run.broken} if with_text else {}
    for problem in dict.fromkeys(run.problems):
        for text in texts.get(problem, ()):
            print_finding(text, stderr=True)
        if problem not in texts:
            print_error(problem)


def _print_lines(run: PolicyTestRun) -> None:
    for file, results in groupby(run.results, lambda one: one.file):
        tests = list(results)
        passed = sum(one.passed for one in tests)
        print_text(f"{file}: {passed} of {len(tests)} passed")
        for one in tests:
            if not one.passed:
                print_text(f"  {'ERROR' if one.problem else 'FAILED'} {_where(one)}: {one.given}")
                for line in one.told():
                    print_text(f"    {line}")
    for line in _beside(run):
        print_text(line)
    print_text(run.summary())


def _beside(run: PolicyTestRun) -> list[str]:
    """Return the lines about coverage and mutation testing that are printed after the test results."""
    said = [line for one in run.coverage if one.covered < one.total for line in one.lines()]
    said += [f"`unreached` names a part that does not exist or is covered: {one}" for one in run.wrong]
    said += [line for one in run.mutation for line in one.lines()]
    if run.coverage:
        short = f", required: {run.least:g} %" if run.covered < run.least else ""
        said.append(f"{run.covered:g} % of {count(len(run.coverage), 'policy', 'policies')} covered{short}")
    return said


def _print_markdown(run: PolicyTestRun) -> None:
    print_text(f"**{markdown_text(run.summary())}**")
    rows = [
        [_where(one), one.given, found.what, found.expected, found.got, "; ".join(found.reasons)]
        for one in run.failed
        for found in one.differences
    ]
    rows += [[_where(one), one.given, "invalid test", "", "", one.problem] for one in run.errors]
    if rows:
        print_text("")
        for line in markdown_table(["file", "test", "field", "expected", "got", "reason"], rows).splitlines():
            print_text(line)
    texts = dict.fromkeys(one.text() for broken in run.broken for one in broken.errors)
    told = {str(broken) for broken in run.broken}
    beside = [line for text in texts for line in text.splitlines()]
    beside += [problem for problem in dict.fromkeys(run.problems) if problem not in told]
    beside += _beside(run)
    if beside:
        for line in ("", "```", *beside, "```"):
            print_text(line)


def _print_annotations(run: PolicyTestRun) -> None:
    for one in [one for one in run.failed if not one.problem]:
        where: dict[str, object] = {"file": one.file, "line": one.line, "col": one.column} if one.line else {}
        text = "\n".join(visible(line) for line in one.told())
        print_command(workflow_command("error", text, {**where, "title": visible(one.given)}))
    for one in run.errors:
        print_command(placed_error(one.problem, {"title": visible(one.given)}))
    for problem in dict.fromkeys(run.problems):
        print_command(placed_error(problem))
    for policy in run.coverage:
        for statement, place in policy.missed_places():
            where = _at(policy.file, place) | {"title": "not covered"}
            print_command(workflow_command("warning", visible(statement), where))
    for report in run.mutation:
        for change in report.unnoticed:
            where = _at(*report.places.get(change, (report.file, None))) | {"title": "not noticed"}
            print_command(workflow_command("warning", visible(change), where))
    print_text(run.summary())


def _at(file: str, place: SourcePosition | None) -> dict[str, object]:
    return {"file": file} if place is None else {"file": file, "line": place.line, "col": place.column}


def _where(one: PolicyTestResult) -> str:
    return f"{one.file}:{one.line}:{one.column}" if one.line else one.file
