"""`policysched why`: why a pod is on its node or pending, and changes that would place it."""

from __future__ import annotations

from collections.abc import Sequence

from policysched.app.checking.findings import Finding
from policysched.app.dry_run.inputs import ClusterInputs
from policysched.app.why.inputs import explain
from policysched.app.why.results import Explanation
from policysched.app.why.tables import explanation_parts
from policysched.cli.cluster_inputs import cluster_sources, read_cluster
from policysched.cli.commands.decisions.evaluating import EvaluationInputs, prepare
from policysched.cli.flags.decisions import WhyFlags
from policysched.cli.output import FAILED, INTERRUPTED
from policysched.cli.reports import print_report
from policysched.cli.rich_output import print_notes, working


def why(flags: WhyFlags) -> int:
    """Explain a pod of a cluster and print the explanation; return the exit code."""
    evaluation = prepare(flags.evaluation, flags.config)
    with working("reading and evaluating the cluster"):
        inputs = read_cluster(cluster_sources(flags, flags.evaluation.access, flags.evaluation.kube_version))
        found = inputs.findings()
        told = _explain(flags, inputs, found, evaluation)
    print_notes((*evaluation.plugins.problems, *told.notes), (one.text() for one in found))
    print_report(told.to_dict(), explanation_parts(told), flags.output, "Explanation", f"why {told.pod}")
    if told.interrupted:
        return INTERRUPTED
    if told.state == "Error":
        return FAILED
    results = {told.state, told.pod_group.result if told.pod_group else ""}
    fits_nowhere = flags.exit_code and "Unschedulable" in results
    return int(any(one.is_error for one in found) or fits_nowhere)


def _explain(
    flags: WhyFlags, inputs: ClusterInputs, found: Sequence[Finding], evaluation: EvaluationInputs
) -> Explanation:
    return explain(
        inputs,
        found,
        flags.pod if "/" in flags.pod else f"{flags.namespace}/{flags.pod}",
        flags.node,
        scheduler_name=flags.scheduler_name or (),
        seed=flags.evaluation.seed,
        now=evaluation.now,
        metrics=evaluation.metrics,
        plugins=evaluation.plugins.registry,
    )
