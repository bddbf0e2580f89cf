"""`policysched plan`: the effect of a change on the pods of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from policysched.app.checking.nodes import absent_findings
from policysched.app.dry_run.inputs import LIVE, ClusterInputs
from policysched.app.files.saved_clusters import load_cluster, refuse_twins
from policysched.app.plan.deciding import Progress
from policysched.app.plan.plan import plan as predict
from policysched.app.plan.results import Plan
from policysched.cli.cluster_inputs import cluster_sources, read_cluster
from policysched.cli.commands.decisions.evaluating import EvaluationInputs, prepare
from policysched.cli.flags.decisions import PlanFlags
from policysched.cli.reports import print_plan, refuse_broken
from policysched.cli.rich_output import console
from policysched.errors import UsageError
from policysched.reading.documents import Document, Object, metadata_of
from policysched.reading.loading import load_one
from policysched.visible import visible

MOST_ABSENT: Final = 3
"""Largest number of notes about labels, resources and values that no object has; a last note counts the others."""

NO_CHANGE: Final = "no change is stated; set --policy, --nodes, --replicas, --config or a --without flag"
"""Note about a plan that compares the cluster with itself."""


def plan(flags: PlanFlags) -> int:
    """Predict the effect of a change and print the differences; return the exit code."""
    evaluation = prepare(flags.evaluation, flags.config or flags.current_config)
    replicas = _replicas(flags.replicas or ())
    with _progress() as progress:
        inputs = read_cluster(cluster_sources(flags, flags.evaluation.access, flags.evaluation.kube_version))
        _refuse_broken(inputs)
        notes: list[str] = [] if _states_a_change(flags) else [NO_CHANGE]
        nodes = load_cluster(flags.nodes or (), notes)
        refuse_twins(nodes)
        told = _predict(flags, inputs, nodes, replicas, evaluation, progress)
        notes += _absent_notes(flags, inputs, [one.object for one in nodes])
    return print_plan(told, (*evaluation.plugins.problems, *inputs.notes, *notes), flags.output, "plan")


def _states_a_change(flags: PlanFlags) -> bool:
    changes = (flags.policy, flags.without_policy, flags.nodes, flags.without_node, flags.replicas)
    return any(changes) or bool(flags.config or flags.current_config)


def _predict(
    flags: PlanFlags,
    inputs: ClusterInputs,
    nodes: Sequence[Document],
    replicas: Mapping[str, int],
    evaluation: EvaluationInputs,
    progress: Progress,
) -> Plan:
    current = flags.current_config
    return predict(
        inputs.objects,
        policies=[one.object for one in inputs.policies],
        without_policies=flags.without_policy or (),
        config=inputs.config,
        current_config=None if current is None else load_one(current, "KubeSchedulerConfiguration"),
        nodes=[one.object for one in nodes],
        without_nodes=flags.without_node or (),
        replicas=replicas,
        scheduler_name=flags.scheduler_name or (),
        seed=flags.evaluation.seed,
        now=evaluation.now,
        metrics=evaluation.metrics,
        plugins=evaluation.plugins.registry,
        kube_version=inputs.kube_version,
        progress=progress,
    )


def _refuse_broken(inputs: ClusterInputs) -> None:
    """Reject new policies that do not compile; print all findings."""
    coming = {id(one): one for one in inputs.findings()}
    refuse_broken(coming.values(), {str(metadata_of(one.object).get("name")) for one in inputs.policies})


def _absent_notes(flags: PlanFlags, inputs: ClusterInputs, nodes: Sequence[Object]) -> Iterator[str]:
    """Yield a note for each label, resource or value that a new policy reads but no node or namespace has."""
    if not inputs.policies:
        return
    found = absent_findings(inputs.policies, [*inputs.objects, *nodes])
    for one in found[:MOST_ABSENT]:
        place = one.place()
        where = f"{one.file}:{place.line}:{place.column}" if place else one.policy
        yield "; ".join(filter(None, (f"{where}: {visible(one.message)}", visible(one.help or ""))))
    if len(found) > MOST_ABSENT:
        files = " ".join(flags.policy or ())
        clusters = " ".join(f"--cluster {one}" for one in flags.cluster or [LIVE])
        yield f"{len(found) - MOST_ABSENT:,} more; `policysched check {clusters} {files}` shows all"


def _replicas(given: Sequence[str]) -> Mapping[str, int]:
    made = {}
    for text in given:
        name, sign, number = text.rpartition("=")
        if not sign or not name or not number.isdecimal():
            raise UsageError(f'--replicas "{text}" is not WORKLOAD=N, such as team-a/train=20')
        made[name] = int(number)
    return made


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show the number of decided pods on stderr, if stderr is a terminal."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda _done, _all: None
        return
    with out.status("reading the cluster") as status:
        yield lambda done, everything: status.update(f"{done:,} of {everything:,} pods decided")
