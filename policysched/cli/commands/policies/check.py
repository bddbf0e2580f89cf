"""`policysched check`: reports errors in policy files."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from policysched.cli.formats import markdown_table, placed_error, say_document, workflow_command
from policysched.cli.options import Context, Kubeconfig
from policysched.cli.output import count, print_finding, say, say_command, say_error, say_json, say_lines, working
from policysched.errors import UsageError
from policysched.visible import visible

if TYPE_CHECKING:
    from pathlib import Path

    from policysched.app.checking.files import CheckedPolicies
    from policysched.app.checking.findings import Finding
    from policysched.framework import Cluster

_CEL: Final = "CEL"
"""Shown instead of an error code for an invalid CEL selector of devices, which `explain` does not cover."""


class CheckFormat(enum.StrEnum):
    """Output formats of findings."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    MARKDOWN = "markdown"
    GITHUB = "github"
    SARIF = "sarif"


def check(  # noqa: PLR0913, PLR0917 - one parameter a flag
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files, folders, or - for standard input.")],
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster", metavar="FILE|DIR|live", help="Nodes to check labels and resources against; repeatable."
        ),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    warnings_as_errors: Annotated[
        bool, typer.Option("--warnings-as-errors", "-W", help="Exit with 1 on warnings too.")
    ] = False,
    allow_none: Annotated[bool, typer.Option("--allow-none", help="Accept files without a policy.")] = False,
    output: Annotated[CheckFormat, typer.Option("--output", "-o", help="Output format.")] = CheckFormat.TABLE,
) -> int:
    """Check policies for errors.

    Checks fields, names and expressions, and the CEL selectors of device classes and resource claims. With --cluster,
    also warns about labels, resources and values that no node has.

    Example: `policysched check policies/ --cluster live`

    Exit codes: 0 no errors; 1 errors, or warnings with -W; 2 a file or a flag is invalid.
    """
    from policysched.app.checking.files import check_files  # noqa: PLC0415 - the compiler is not needed for --help

    pods: list[Mapping[str, Any]] = []
    nodes = _nodes(cluster, kubeconfig, context, pods) if cluster else None
    found = check_files(files, nodes, lenient=allow_none)
    if not (found.policies or found.selecting or found.problems or allow_none):
        _say_ignored(found)
        raise UsageError(f"no SchedulingPolicy in {', '.join(files)}")
    _print(found, output)
    _say_unselected(found, pods)
    if found.problems:
        return 2
    return int(bool(found.errors or (warnings_as_errors and found.warnings)))


def _say_unselected(found: CheckedPolicies, pods: list[Mapping[str, Any]]) -> None:
    """Print a note about policies that select no pod in the files of the cluster."""
    from policysched.app.checking.unselected import unselected  # noqa: PLC0415 - as above

    for note in unselected(found.documents, pods):
        say(f"note: {note}", stderr=True)


def _nodes(names: list[str], kubeconfig: Path | None, context: str | None, pods: list[Mapping[str, Any]]) -> Cluster:
    from policysched.app.checking.files import read_nodes  # noqa: PLC0415 - as above
    from policysched.cli.event_loop import wait_for  # noqa: PLC0415

    notes: list[str] = []
    with working("reading the nodes"):
        nodes = wait_for(read_nodes(names, kubeconfig, context, pods, notes))
    for note in notes:
        say(f"note: {note}", stderr=True)
    return nodes


def _print(found: CheckedPolicies, output: CheckFormat) -> None:
    if output in {CheckFormat.JSON, CheckFormat.YAML}:
        say_document("Finding", [one.to_dict() for one in found.findings], output)
    elif output is CheckFormat.SARIF:
        from policysched.app.checking.sarif import sarif_log  # noqa: PLC0415 - few ask for it

        say_json(sarif_log(found))
    elif output is CheckFormat.MARKDOWN:
        _print_markdown(found)
    else:
        _print_findings(found, output)
    _say_ignored(found)
    for problem in found.problems:
        say_error(problem)
    is_for_people = output in {CheckFormat.TABLE, CheckFormat.GITHUB, CheckFormat.MARKDOWN}
    if is_for_people and (found.policies or found.selecting or not found.problems):
        say(_summary(found))


def _say_ignored(found: CheckedPolicies) -> None:
    for note in found.ignored.notes():
        say(f"note: {note}", stderr=True)


def _print_findings(found: CheckedPolicies, output: CheckFormat) -> None:
    if output is CheckFormat.TABLE:
        for one in found.findings:
            print_finding(one.text())
        return
    for one in found.findings:
        say_command(_annotation(one))
    for problem in found.problems:
        say_command(placed_error(str(problem)))


def _print_markdown(found: CheckedPolicies) -> None:
    rows = []
    for one in found.findings:
        place = one.place()
        where = f"{one.file}:{place.line}:{place.column}" if place else one.file
        rows.append([where, f"{one.severity} {one.code}", one.policy, one.message, one.help or ""])
    if rows:
        say_lines(markdown_table(["place", "code", "policy", "message", "help"], rows))
        say("")


def _annotation(one: Finding) -> str:
    """Return the GitHub workflow command for a finding."""
    from policysched.reading.files import STDIN, shown  # noqa: PLC0415 - as above

    found, place = one.diagnostic, one.place()
    where: dict[str, object] = {}
    if one.document is not None and place is not None and one.document.file != shown(STDIN):
        where |= {"file": one.document.file, "line": place.line, "col": place.column}
        where["endColumn"] = one.end(place)
    help_text = f"\nhelp: {visible(found.help)}" if found.help else ""
    return workflow_command(found.severity, f"{visible(found.message)}{help_text}", {**where, "title": found.code})


def _summary(found: CheckedPolicies) -> str:
    read = [count(found.policies, "policy", "policies")] if found.policies or not found.selecting else []
    read += [count(found.selecting, "device class or claim", "device classes and claims")] if found.selecting else []
    said = f"{', '.join(read)}: {count(found.errors, 'error')}, "
    said += count(found.warnings, "warning")
    codes = sorted({one.diagnostic.code for one in found.findings} - {_CEL})
    if not codes:
        return said
    if len(codes) == 1:
        return f"{said}; run `policysched explain {codes[0]}` for details"
    return f"{said}; run `policysched explain CODE` for details on {', '.join(codes[:-1])} and {codes[-1]}"
