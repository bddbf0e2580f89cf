"""`policysched translate`: prints a node affinity that allows at least the nodes that filters of policies allow."""

from __future__ import annotations

from policysched.app.dry_run.dry_run import simulate
from policysched.app.dry_run.inputs import LIVE, gather
from policysched.app.translate.tables import translation_parts
from policysched.app.translate.translate import translate_pod
from policysched.cli.event_loop import wait_for
from policysched.cli.flags.policies import TranslateFlags
from policysched.cli.output import print_left_out
from policysched.cli.reports import print_report
from policysched.cli.rich_output import print_notes, working


def translate(flags: TranslateFlags) -> int:
    """Print the node affinity of a pod, and how each filter is translated; return the exit code."""
    with working("reading the cluster"):
        read = gather(
            flags.cluster or [LIVE],
            flags.pod,
            flags.policy or (),
            config=flags.config,
            kubeconfig=flags.access.kubeconfig,
            context=flags.access.context,
        )
        inputs = wait_for(read)
    print_left_out(inputs.cluster.left_out)
    found, wanted = inputs.findings(), inputs.wanted
    part = inputs.cluster.taking_part(found)
    made = simulate(part.objects, wanted.object, part.policies, config=inputs.cluster.config)
    translation = translate_pod(made, is_named=not wanted.template, failed=part.failed)
    print_notes((*inputs.notes, *translation.notes, *part.notes), (one.text() for one in found))
    told = translation.to_dict()
    print_report(told, translation_parts(told), flags.output, "Translation", f"translate {translation.pod}")
    return int(any(one.is_error for one in found) or (flags.exact and not translation.is_exact))
