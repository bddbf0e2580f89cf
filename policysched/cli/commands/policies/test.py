"""`policysched test`: runs the tests of policies."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from policysched.cli.formats import (
    OutputFormat,
    markdown_table,
    markdown_text,
    placed_error,
    say_document,
    workflow_command,
)
from policysched.cli.options import Output, Plugin
from policysched.cli.output import INTERRUPTED, count, print_finding, say, say_command, say_error, say_json, working
from policysched.errors import UsageError
from policysched.visible import visible

PAUSE: Final = 0.3
"""Interval between two checks of files for changes. Units: seconds."""

if TYPE_CHECKING:
    from collections.abc import Callable

    from policysched.app.policy_tests.running import PolicyTestResult
    from policysched.app.policy_tests.suite import PolicyTestRun, RunChoices
    from policysched.reading.positions import SourcePosition


Paths: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="PATH", help="Test files or folders; default: the current folder.")
]
Keyword: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--keyword",
        "-k",
        metavar="EXPR",
        help="Run only tests whose names match: parts of names with and, or, not and brackets.",
    ),
]
FailFast: TypeAlias = Annotated[bool, typer.Option("--fail-fast", "-x", help="Stop at the first failed test.")]
Coverage: TypeAlias = Annotated[
    bool, typer.Option("--coverage", help="Report the parts of policies that no test reaches.")
]
MinCoverage: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--min-coverage",
        metavar="PERCENT",
        min=0,
        max=100,
        help="Exit with 1 if coverage is lower; implies --coverage.",
    ),
]
Mutate: TypeAlias = Annotated[
    bool, typer.Option("--mutate", help="Report small changes to policies that no test notices.")
]
MutateSeconds: TypeAlias = Annotated[
    float, typer.Option("--mutate-seconds", metavar="SECONDS", min=1, help="Time limit for --mutate.")
]
Junit: TypeAlias = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write the results to this file as JUnit XML.")
]
Watch: TypeAlias = Annotated[
    bool, typer.Option("--watch", help="Run the tests again when a file changes, until Ctrl-C.")
]
Schema: TypeAlias = Annotated[bool, typer.Option("--schema", help="Print the JSON schema of test files and exit.")]


def test(  # noqa: PLR0913, PLR0917 - one parameter a flag
    paths: Paths = None,
    keyword: Keyword = None,
    fail_fast: FailFast = False,
    coverage: Coverage = False,
    min_coverage: MinCoverage = None,
    mutate: Mutate = False,
    mutate_seconds: MutateSeconds = 600,
    junit: Junit = None,
    watch: Watch = False,
    plugin: Plugin = None,
    schema: Schema = False,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Run policy tests.

    Example: `policysched test policies/ --coverage`

    Exit codes: 0 all tests passed; 1 a test failed, coverage is too low, or a change was not noticed; 2 a test, a
    file or a flag is invalid.
    """
    if schema:
        from policysched.app.policy_tests.file_format import json_schema  # noqa: PLC0415 - as below

        say_json(json_schema())
        return 0
    from policysched.app.policy_tests.suite import RunChoices  # noqa: PLC0415 - the engine is not needed for --help
    from policysched.app.policy_tests.suite import keyword as chosen_by  # noqa: PLC0415 - as above

    choices = RunChoices(
        chosen_by(keyword) if keyword is not None else lambda _: True,
        fail_fast,
        coverage=coverage or min_coverage is not None,
        least_coverage=min_coverage or 0.0,
        mutate=mutate,
    )
    names = paths or ["."]

    def once() -> int:
        end = time.monotonic() + mutate_seconds
        run = _run(names, plugin, replace(choices, in_time=lambda: time.monotonic() < end))
        if run.left_out and not (run.results or run.problems or run.interrupted):
            run.problems.append(f'--keyword "{keyword}" matches none of {count(run.left_out, "test")}')
        _print(run, output)
        if junit is not None:
            from policysched.app.policy_tests.junit import write_junit  # noqa: PLC0415 - as above

            write_junit(run, junit)
        return run.exit_code

    return _watch(names, once) if watch else once()


def _watch(names: list[str], once: Callable[[], int]) -> int:
    """Run tests after every change of a file until interrupted; return the exit code of the last run.

    Errors are printed.
    """
    from policysched.app.policy_tests.watching import watch  # noqa: PLC0415 - as above

    code = 0

    def run() -> None:
        nonlocal code
        try:
            code = once()
        except UsageError as error:
            say_error(error)
            code = 2
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        say("waiting for changes; Ctrl-C stops")

    with suppress(KeyboardInterrupt):
        watch(names, run, lambda: time.sleep(PAUSE))
    return code


def _run(paths: list[str], plugin: list[str] | None, choices: RunChoices) -> PolicyTestRun:
    from policysched.app.plugins.discovery import configurable_plugins  # noqa: PLC0415 - as above
    from policysched.app.policy_tests.reading import find_files  # noqa: PLC0415 - as above
    from policysched.app.policy_tests.running import PolicyTestOptions  # noqa: PLC0415 - as above
    from policysched.app.policy_tests.suite import run_files  # noqa: PLC0415 - as above
    from policysched.cli.event_loop import uncollected  # noqa: PLC0415 - as above

    known = configurable_plugins(plugin, None)
    files = find_files(paths)
    with uncollected(), working("running tests") as show:
        return run_files(files, PolicyTestOptions(known.registry), replace(choices, on_test=show))


def _print(run: PolicyTestRun, output: OutputFormat) -> None:
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        say_document("TestRun", run.to_dict(), output)
    elif output is OutputFormat.MARKDOWN:
        _print_markdown(run)
    elif output is OutputFormat.GITHUB:
        _print_annotations(run)
    else:
        _print_lines(run)
    _say_problems(run, with_text=output in {OutputFormat.TABLE, OutputFormat.WIDE})


def _say_problems(run: PolicyTestRun, *, with_text: bool) -> None:
    """Print problems of files on stderr, once each; with the source text of invalid policies if wanted."""
    texts = {str(broken): [one.text() for one in broken.errors] for broken in run.broken} if with_text else {}
    for problem in dict.fromkeys(run.problems):
        for text in texts.get(problem, ()):
            print_finding(text, stderr=True)
        if problem not in texts:
            say_error(problem)


def _print_lines(run: PolicyTestRun) -> None:
    for file, results in groupby(run.results, lambda one: one.file):
        tests = list(results)
        passed = sum(one.passed for one in tests)
        say(f"{file}: {passed} of {len(tests)} passed")
        for one in tests:
            if not one.passed:
                say(f"  {'ERROR' if one.problem else 'FAILED'} {_where(one)}: {one.given}")
                for line in one.told():
                    say(f"    {line}")
    for line in _beside(run):
        say(line)
    say(run.summary())


def _beside(run: PolicyTestRun) -> list[str]:
    """Return lines with the results of coverage and mutation."""
    said = [line for one in run.coverage if one.covered < one.total for line in one.lines()]
    said += [f"`unreached` names a part that does not exist or is covered: {one}" for one in run.wrong]
    said += [line for one in run.mutation for line in one.lines()]
    if run.coverage:
        short = f", required: {run.least:g} %" if run.covered < run.least else ""
        said.append(f"{run.covered:g} % of {count(len(run.coverage), 'policy', 'policies')} covered{short}")
    return said


def _print_markdown(run: PolicyTestRun) -> None:
    say(f"**{markdown_text(run.summary())}**")
    rows = [
        [_where(one), one.given, found.what, found.expected, found.got, "; ".join(found.reasons)]
        for one in run.failed
        for found in one.differences
    ]
    rows += [[_where(one), one.given, "invalid test", "", "", one.problem] for one in run.errors]
    if rows:
        say("")
        for line in markdown_table(["file", "test", "field", "expected", "got", "reason"], rows).splitlines():
            say(line)
    texts = dict.fromkeys(one.text() for broken in run.broken for one in broken.errors)
    told = {str(broken) for broken in run.broken}
    beside = [line for text in texts for line in text.splitlines()]
    beside += [problem for problem in dict.fromkeys(run.problems) if problem not in told]
    beside += _beside(run)
    if beside:
        for line in ("", "```", *beside, "```"):
            say(line)


def _print_annotations(run: PolicyTestRun) -> None:
    for one in [one for one in run.failed if not one.problem]:
        where: dict[str, object] = {"file": one.file, "line": one.line, "col": one.column} if one.line else {}
        text = "\n".join(visible(line) for line in one.told())
        say_command(workflow_command("error", text, {**where, "title": visible(one.given)}))
    for one in run.errors:
        say_command(placed_error(one.problem, {"title": visible(one.given)}))
    for problem in dict.fromkeys(run.problems):
        say_command(placed_error(problem))
    for policy in run.coverage:
        for statement, place in policy.missed_places():
            where = _at(policy.file, place) | {"title": "not covered"}
            say_command(workflow_command("warning", visible(statement), where))
    for report in run.mutation:
        for change in report.unnoticed:
            where = _at(*report.places.get(change, (report.file, None))) | {"title": "not noticed"}
            say_command(workflow_command("warning", visible(change), where))
    say(run.summary())


def _at(file: str, place: SourcePosition | None) -> dict[str, object]:
    return {"file": file} if place is None else {"file": file, "line": place.line, "col": place.column}


def _where(one: PolicyTestResult) -> str:
    return f"{one.file}:{one.line}:{one.column}" if one.line else one.file
