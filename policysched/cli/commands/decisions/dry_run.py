"""`policysched dry-run`: shows where a pod would be placed, and why."""

from __future__ import annotations

from dataclasses import replace

from policysched.app.dry_run.inputs import LIVE, gather
from policysched.app.dry_run.results import Report
from policysched.app.dry_run.tables import decision_parts
from policysched.cli.commands.decisions.evaluating import prepare
from policysched.cli.event_loop import wait_for
from policysched.cli.flags.decisions import DryRunFlags
from policysched.cli.flags.formats import OutputFormat
from policysched.cli.output import FAILED, print_left_out
from policysched.cli.reports import print_report
from policysched.cli.rich_output import print_notes, working


def dry_run(flags: DryRunFlags) -> int:
    """Decide about a pod and print the decision; return the exit code."""
    evaluation, access = prepare(flags.evaluation, flags.config), flags.evaluation.access
    with working("reading the cluster and deciding"):
        read = gather(
            flags.cluster or [LIVE],
            flags.pod,
            flags.policy or (),
            config=flags.config,
            kubeconfig=access.kubeconfig,
            context=access.context,
            kube_version=flags.evaluation.kube_version,
        )
        inputs = wait_for(read)
        print_left_out(inputs.cluster.left_out)
        found = inputs.findings()
        inputs = replace(inputs, metrics=evaluation.metrics, plugins=evaluation.plugins.registry)
        report = inputs.evaluate(found, flags.evaluation.seed, evaluation.now)
    notes = (*evaluation.plugins.problems, *inputs.notes, *report.notes, *report.metric_problems)
    print_notes(notes, (one.text() for one in found))
    _print(report, flags.output)
    if report.result == "Error":
        return FAILED
    return int(any(one.is_error for one in found) or (flags.exit_code and not report.selected))


def _print(report: Report, output: OutputFormat) -> None:
    told = report.to_dict()
    print_report(told, decision_parts(told), output, "DryRun", f"dry-run {told['pod']}")
