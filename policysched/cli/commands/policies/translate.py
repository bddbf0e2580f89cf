"""`policysched translate`: prints a node affinity that matches at least the nodes that pass the filters of policies."""

from __future__ import annotations

from policysched.app.dry_run.dry_run import simulate
from policysched.app.translate.admission_policies import translated_cluster
from policysched.app.translate.tables import translation_parts
from policysched.app.translate.translate import translate_pod
from policysched.cli.cluster_inputs import cluster_sources, read_cluster, read_pod_and_cluster
from policysched.cli.flags.formats import OutputFormat, TextFormat
from policysched.cli.flags.policies import TranslateFlags
from policysched.cli.formats import print_value
from policysched.cli.reports import print_report
from policysched.cli.rich_output import print_notes, working
from policysched.errors import UsageError


def translate(flags: TranslateFlags) -> int:
    """Print filters of policies as node affinity of a pod, or as admission policies for all pods; return the exit code.

    Raises:
        UsageError: flags exclude each other, or an input cannot be used.
    """
    if flags.admission_policies:
        return _print_admission_policies(flags)
    if flags.pod is None:
        raise UsageError("set --pod, or --admission-policies for the pods of all workloads")
    with working("reading the cluster"):
        inputs = read_pod_and_cluster(cluster_sources(flags, flags.access), flags.pod)
    found, wanted = inputs.findings(), inputs.wanted
    part = inputs.cluster.taking_part(found)
    made = simulate(part.objects, wanted.object, part.policies, config=inputs.cluster.config)
    translation = translate_pod(made, is_named=not wanted.template, failed=part.failed)
    print_notes((*inputs.notes, *translation.notes, *part.notes), (one.text() for one in found))
    told = translation.to_dict()
    print_report(told, translation_parts(told), flags.output, "Translation", f"translate {translation.pod}")
    return int(any(one.is_error for one in found) or (flags.exact and not translation.is_exact))


def _print_admission_policies(flags: TranslateFlags) -> int:
    """Print the admission policies that set the node affinity of new pods, as a List; return the exit code."""
    formats = {
        OutputFormat.TABLE: TextFormat.YAML,
        OutputFormat.YAML: TextFormat.YAML,
        OutputFormat.JSON: TextFormat.JSON,
    }
    if flags.pod is not None:
        raise UsageError("--pod and --admission-policies cannot be combined")
    if flags.output not in formats:
        raise UsageError("admission policies are printed as yaml or json")
    with working("reading the cluster"):
        inputs = read_cluster(cluster_sources(flags, flags.access))
    found = inputs.findings()
    part = inputs.taking_part(found)
    admissions = translated_cluster(part.objects, part.policies, inputs.config)
    rest = [f"policy {one.policy}/{one.rule} {one.note}" for one in admissions if one.note]
    print_notes((*inputs.notes, *part.notes, *rest), (one.text() for one in found))
    items = [obj for one in admissions for obj in one.objects]
    print_value({"apiVersion": "v1", "kind": "List", "items": items}, formats[flags.output])
    return int(any(one.is_error for one in found) or (flags.exact and bool(rest)))
