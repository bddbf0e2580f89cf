"""`policysched check`: find errors of policies in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from policysched.app.checking.check import FindAbsent
from policysched.app.checking.files import CheckedPolicies, check_files
from policysched.app.checking.findings import Finding
from policysched.app.checking.sarif import sarif_log
from policysched.app.checking.unselected import unselected
from policysched.cli.flags.feature_gates import apply_gates
from policysched.cli.flags.formats import CheckFormat
from policysched.cli.flags.policies import CheckFlags
from policysched.cli.formats import markdown_table, placed_error, print_document, workflow_command
from policysched.cli.output import count, print_command, print_error, print_json, print_lines, print_text
from policysched.cli.rich_output import print_finding, working
from policysched.errors import UsageError
from policysched.model.release import DEFAULT, Release
from policysched.model.release_choice import AUTO, first_accepted
from policysched.reading.files import STDIN, shown
from policysched.visible import visible

_CEL: Final = "CEL"
"""Error code of findings about CEL device selectors; `policysched explain` does not know this code."""


def check(flags: CheckFlags) -> int:
    """Check policies and print the findings; return the exit code."""
    release = _release(flags.feature_gates or [])
    find_absent, pods = _read_cluster(flags, release) if flags.cluster or release else (None, ())
    found = check_files(flags.files, find_absent, lenient=flags.allow_none)
    if not (found.policies or found.selecting or found.problems or flags.allow_none):
        _print_ignored(found)
        raise UsageError(f"no SchedulingPolicy in {', '.join(flags.files)}")
    _print(found, flags.output)
    _print_unselected(found, pods)
    if found.problems:
        return 2
    return int(bool(found.errors or (flags.warnings_as_errors and found.warnings)))


def _print_unselected(found: CheckedPolicies, pods: Sequence[Mapping[str, Any]]) -> None:
    """Print a note about each policy that selects no pod of the files that --cluster names."""
    for note in unselected(found.documents, pods):
        print_text(f"note: {note}", stderr=True)


def _release(gates: list[str]) -> Release | None:
    """Return a Kubernetes release that supports the given feature gates, with these gates set; None without gates.

    Raises:
        UsageError: a gate is not supported.
    """
    given = [one for text in gates for one in text.split(",")]
    return first_accepted(AUTO, lambda release: apply_gates(given, release=release)) if given else None


def _read_cluster(flags: CheckFlags, release: Release | None) -> tuple[FindAbsent, Sequence[Mapping[str, Any]]]:
    """Return a function that finds values missing on the nodes of --cluster, and the pods of its files."""
    from policysched.app.checking.nodes import (  # noqa: PLC0415 - NumPy and asyncio take 130 ms
        absent_on,
        nodes_of,
        read_nodes,
    )
    from policysched.cli.event_loop import wait_for  # noqa: PLC0415 - as above

    if not flags.cluster:
        return absent_on(nodes_of((), release or DEFAULT)), ()
    with working("reading the nodes"):
        read = wait_for(read_nodes(flags.cluster, flags.access.kubeconfig, flags.access.context, release))
    for note in read.notes:
        print_text(f"note: {note}", stderr=True)
    return absent_on(read.cluster), read.pods


def _print(found: CheckedPolicies, output: CheckFormat) -> None:
    if output in {CheckFormat.JSON, CheckFormat.YAML}:
        print_document("Finding", [one.to_dict() for one in found.findings], output)
    elif output is CheckFormat.SARIF:
        print_json(sarif_log(found))
    elif output is CheckFormat.MARKDOWN:
        _print_markdown(found)
    else:
        _print_findings(found, output)
    _print_ignored(found)
    for problem in found.problems:
        print_error(problem)
    is_for_people = output in {CheckFormat.TABLE, CheckFormat.GITHUB, CheckFormat.MARKDOWN}
    if is_for_people and (found.policies or found.selecting or not found.problems):
        print_text(_summary(found))


def _print_ignored(found: CheckedPolicies) -> None:
    for note in found.ignored.notes():
        print_text(f"note: {note}", stderr=True)


def _print_findings(found: CheckedPolicies, output: CheckFormat) -> None:
    if output is CheckFormat.TABLE:
        for one in found.findings:
            print_finding(one.text())
        return
    for one in found.findings:
        print_command(_annotation(one))
    for problem in found.problems:
        print_command(placed_error(str(problem)))


def _print_markdown(found: CheckedPolicies) -> None:
    rows = []
    for one in found.findings:
        place = one.place()
        where = f"{one.file}:{place.line}:{place.column}" if place else one.file
        rows.append([where, f"{one.severity} {one.code}", one.policy, one.message, one.help or ""])
    if rows:
        print_lines(markdown_table(["place", "code", "policy", "message", "help"], rows))
        print_text("")


def _annotation(one: Finding) -> str:
    """Return the GitHub workflow command for a finding."""
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
