"""`policysched dry-run`: shows where a pod, or the pods of a group, would be placed, and why."""

from __future__ import annotations

from dataclasses import replace

from policysched.app.dry_run.group_tables import group_parts
from policysched.app.dry_run.inputs import Inputs
from policysched.app.dry_run.results import GroupReport, Report
from policysched.app.dry_run.tables import Record, decision_parts
from policysched.cli.cluster_inputs import cluster_sources, read_pod_and_cluster
from policysched.cli.commands.decisions.evaluating import prepare
from policysched.cli.flags.decisions import DryRunFlags
from policysched.cli.flags.formats import OutputFormat
from policysched.cli.output import FAILED
from policysched.cli.reports import print_report
from policysched.cli.rich_output import print_notes, working
from policysched.model.release import with_pod_groups
from policysched.model.release_choice import release_named


def dry_run(flags: DryRunFlags) -> int:
    """Simulate scheduling of a pod or a pod group and print the decision; return the exit code."""
    evaluation = prepare(flags.evaluation, flags.config)
    with working("reading the cluster and deciding"):
        sources = cluster_sources(flags, flags.evaluation.access, flags.evaluation.kube_version)
        inputs = read_pod_and_cluster(sources, flags.pod)
        found = inputs.findings()
        templates = tuple(flags.node_template or ())
        registry = evaluation.plugins.registry
        inputs = replace(inputs, metrics=evaluation.metrics, plugins=registry, node_templates=templates)
        is_group = inputs.has_group and with_pod_groups(release_named(inputs.cluster.kube_version)) is not None
        evaluate = inputs.evaluate_group if is_group else inputs.evaluate
        report: Report | GroupReport = evaluate(found, flags.evaluation.seed, evaluation.now)
    notes = (*evaluation.plugins.problems, *inputs.notes, *report.notes, *report.metric_problems)
    alone = (_alone(inputs),) if inputs.group and not is_group else ()
    print_notes((*notes, *alone), (one.text() for one in found))
    _print(report.to_dict(), flags.output)
    if report.result == "Error":
        return FAILED
    return int(any(one.is_error for one in found) or (flags.exit_code and report.result != "Scheduled"))


def _alone(inputs: Inputs) -> str:
    """Return a note that explains why a pod that names a pod group is simulated without the group."""
    reason = "this Kubernetes minor does not schedule pod groups"
    if not inputs.has_group:
        reason = "the group is neither in the file nor in the cluster"
    return f"pod {inputs.wanted.object['metadata']['name']} decided without pod group {inputs.group}: {reason}"


def _print(told: Record, output: OutputFormat) -> None:
    if "podGroup" in told:
        print_report(told, group_parts(told), output, "GroupDryRun", f"dry-run {told['podGroup']}")
    else:
        print_report(told, decision_parts(told), output, "DryRun", f"dry-run {told['pod']}")
