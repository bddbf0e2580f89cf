"""Which pods a policy acts on, and which of its rules speak for a pod.

Filters may depend on labels of a namespace that the scheduler has not heard of. A namespace exists before its pods do,
but each kind has a watch of its own: a pod can be heard of first, and a watch that fails can hide namespaces for long.
A pod then waits, because to take the labels as missing could lift a restriction. Scores go on without them: a
preference holds no pod back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from policysched.framework import Cluster, Status, unresolvable
from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.ir.graph import Program
from policysched.model.objects import Pod
from policysched.model.pod_requirements import is_system
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.dependencies.context import EvaluationContext, RuleFrame
from policysched.rules.results.matrix import RowT

_LABELS: Final = "namespace_labels"


class Selection:
    """The pods of one policy."""

    def __init__(self, policy: CompiledPolicy) -> None:
        self._policy = policy
        self._by_labels = policy.namespaces is not None and bool(policy.namespaces.requirements)
        self._needs_namespaces = bool(policy.filters) and (
            self._by_labels or any(_reads_labels(program, "pod", "peer") for program in policy.filter_programs)
        )

    def spares(self, pod: Pod) -> bool:
        """Tell whether filters let a pod of the system be."""
        return is_system(pod) and not self._policy.spec.include_system_pods

    def unselected(self, pod: Pod, cluster: Cluster) -> str:
        """Say which selector does not take the pod, nothing where all do; an unknown namespace has no labels."""
        namespaces, name = self._policy.namespaces, pod.metadata.namespace
        labels = cluster.namespaces.get(name, {})
        if namespaces is None or namespaces.matches(labels):
            return self._untaken(pod)
        unknown = "" if labels else ", of which none are known: its Namespace object is missing"
        return self._untaken(pod) or f'namespaceSelector does not match the labels of namespace "{name}"{unknown}'

    def speaking(
        self, rows: Sequence[RowT], pod: Pod, context: EvaluationContext, *, unknown: bool
    ) -> tuple[RowT, ...]:
        """Give the rules that speak for a pod.

        Args:
            rows: The rules that may.
            pod: The pod.
            context: What they are evaluated in.
            unknown: Whether a condition holds that is unknown.
        """
        if self.unselected(pod, context.cluster):
            return ()
        frame = context.plain(context.inputs(pod))
        if not _holds(self._policy.applies_to, frame, unknown=unknown):
            return ()
        return tuple(row for row in rows if _holds(row.rule.when, frame, unknown=unknown))

    def awaits(self, pod: Pod, context: EvaluationContext) -> Status | None:
        """Reject a pod while labels that the filters depend on are those of a namespace that is not known."""
        if not self._needs_namespaces or self.spares(pod):
            return None
        cluster = context.cluster
        is_known = pod.metadata.namespace in cluster.namespaces
        if self.unselected(pod, cluster) if is_known else self._untaken(pod):
            return None
        found = self._unknown_namespace(pod, context, is_known=is_known)
        if found is None:
            return None
        return unresolvable(f'policy {self._policy.key}: namespace "{found}" is not known yet')

    def _unknown_namespace(self, pod: Pod, context: EvaluationContext, *, is_known: bool) -> str | None:
        """Name the unknown namespace that the filters for a pod depend on.

        Missing: None where they depend on none.
        """
        policy, frame = self._policy, context.plain(context.inputs(pod))

        def may_hold(program: Program | None) -> bool:
            return (not is_known and _reads_labels(program, "pod")) or _holds(program, frame, unknown=True)

        if not may_hold(policy.applies_to):
            return None
        speaking = [rule for rule in policy.filters if may_hold(rule.when)]
        if not is_known and speaking:
            programs = (policy.applies_to, *(one for rule in speaking for one in (rule.when, rule.require)))
            if self._by_labels or any(_reads_labels(program, "pod") for program in programs):
                return pod.metadata.namespace
        if any(_reads_labels(rule.require, "peer") for rule in speaking):
            return min(context.cluster.unknown_namespaces, default=None)
        return None

    def _untaken(self, pod: Pod) -> str:
        """Say why the scheduler name or the labels of a pod are not those of the policy."""
        names, pods = self._policy.spec.scheduler_names, self._policy.pods
        if names and pod.spec.scheduler_name not in names:
            return f'schedulerNames ({", ".join(names)}) do not hold "{pod.spec.scheduler_name}"'
        if pods is not None and not pods.matches(pod.metadata.labels):
            return "podSelector does not match the pod's labels"
        return ""


def _reads_labels(program: Program | None, *roots: str) -> bool:
    """Tell whether a program reads labels of the pod's own namespace (`pod`) or of placed pods' (`peer`)."""
    return program is not None and any(item.root in roots and item.path[0] == _LABELS for item in program.inputs)


def _holds(program: Program | None, frame: RuleFrame, *, unknown: bool) -> bool:
    if program is None:
        return True
    true, lacking = evaluate_columns(program.root, frame)
    return bool(true) or (unknown and bool(lacking))
