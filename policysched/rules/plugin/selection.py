"""`Selection`: which pods a policy applies to, and which of its rules apply.

Filters may depend on labels of a namespace that the scheduler does not know yet: each kind has its own watch, so a pod
may arrive before its namespace, and a failed watch can hide namespaces for a long time. The pod waits then, because
treating the labels as missing could lift a restriction. Scores do not wait: a preference never delays a pod.

Source: docs/reference/language.md#the-object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from policysched.framework import Cluster, Status, unresolvable
from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.ir.graph import Program
from policysched.model.defaults import NAME_LABEL
from policysched.model.objects import Pod
from policysched.model.pod_requirements import is_system
from policysched.rules.compile.policy import CompiledFilter, CompiledPolicy
from policysched.rules.results.rule_rows import RowT
from policysched.rules.shared_values.context import EvaluationContext, RuleFrame

LABELS: Final = "namespace_labels"


class Selection:
    """The pods that one policy selects.

    Args:
        policy: The policy.
        restricting: The rules that must not be skipped while a namespace is unknown: filters, or the condition on
            victims.
    """

    def __init__(self, policy: CompiledPolicy, restricting: Sequence[CompiledFilter]) -> None:
        self._policy = policy
        self._restricting = restricting
        self._by_labels = policy.namespaces is not None and bool(policy.namespaces.requirements)
        conditions = (one for rule in restricting for one in (rule.when, rule.require))
        programs = (policy.applies_to, *conditions)
        self._needs_namespaces = bool(restricting) and (
            self._by_labels or any(_reads_labels(program, "pod", "peer") for program in programs)
        )

    def spares(self, pod: Pod) -> bool:
        """Return whether the policy's filters do not apply to a pod because it is a system pod."""
        return is_system(pod) and not self._policy.spec.include_system_pods

    def unselected(self, pod: Pod, cluster: Cluster) -> str:
        """Return the selector that does not match a pod, empty if all match; an unknown namespace has no labels."""
        namespaces, name = self._policy.namespaces, pod.metadata.namespace
        labels = cluster.namespaces.get(name, {})
        if namespaces is None or namespaces.matches(labels):
            return self._unmatched(pod)
        why = "" if labels else ", of which none are known: its Namespace object is missing"
        why = ": it has none" if [*labels] == [NAME_LABEL] else why
        return self._unmatched(pod) or f'namespaceSelector does not match the labels of namespace "{name}"{why}'

    def applying(
        self, rows: Sequence[RowT], pod: Pod, context: EvaluationContext, *, unknown: bool
    ) -> tuple[RowT, ...]:
        """Return those of the given rules that apply to a pod.

        Args:
            rows: The rules of the policy.
            pod: The pod.
            context: The context to evaluate conditions in.
            unknown: Whether an unknown condition applies the rule.
        """
        if self.unselected(pod, context.cluster):
            return ()
        if self._policy.applies_to is None and all(row.rule.when is None for row in rows):
            return tuple(rows)
        frame = context.plain(context.inputs(pod))
        if not holds(self._policy.applies_to, frame, unknown=unknown):
            return ()
        return tuple(row for row in rows if holds(row.rule.when, frame, unknown=unknown))

    def selects(self, pod: Pod, context: EvaluationContext, *, unknown: bool) -> bool:
        """Return whether the policy applies to a pod; `unknown` is the result if `appliesTo` is unknown."""
        if self.unselected(pod, context.cluster):
            return False
        return holds(self._policy.applies_to, context.plain(context.inputs(pod)), unknown=unknown)

    def awaits(self, pod: Pod, context: EvaluationContext) -> Status | None:
        """Return a rejection if the rules for a pod depend on the labels of an unknown namespace, else None."""
        if not self._needs_namespaces or self.spares(pod):
            return None
        cluster = context.cluster
        is_known = pod.metadata.namespace in cluster.namespaces
        if self.unselected(pod, cluster) if is_known else self._unmatched(pod):
            return None
        found = self._unknown_namespace(pod, context, is_known=is_known)
        if found is None:
            return None
        return unresolvable(f'policy {self._policy.key}: namespace "{found}" is not known yet')

    def _unknown_namespace(self, pod: Pod, context: EvaluationContext, *, is_known: bool) -> str | None:
        """Return the unknown namespace on whose labels the rules for a pod depend; None without such a namespace."""
        policy, frame = self._policy, context.plain(context.inputs(pod))

        def may_hold(program: Program | None) -> bool:
            return (not is_known and _reads_labels(program, "pod")) or holds(program, frame, unknown=True)

        if not may_hold(policy.applies_to):
            return None
        applying = [rule for rule in self._restricting if may_hold(rule.when)]
        if not is_known and applying:
            programs = (policy.applies_to, *(one for rule in applying for one in (rule.when, rule.require)))
            if self._by_labels or any(_reads_labels(program, "pod") for program in programs):
                return pod.metadata.namespace
        if any(_reads_labels(rule.require, "peer") for rule in applying):
            return min(context.cluster.unknown_namespaces, default=None)
        return None

    def _unmatched(self, pod: Pod) -> str:
        """Return why the pod's scheduler name or labels do not match; empty if they match."""
        names, pods = self._policy.spec.scheduler_names, self._policy.pods
        if names and pod.spec.scheduler_name not in names:
            return f'schedulerNames ({", ".join(names)}) do not contain "{pod.spec.scheduler_name}"'
        if pods is not None and not pods.matches(pod.metadata.labels):
            return "podSelector does not match the pod's labels"
        return ""


def _reads_labels(program: Program | None, *roots: str) -> bool:
    """Return whether a program reads labels of the pod's namespace (`pod`) or of placed pods' namespaces (`peer`)."""
    return program is not None and any(item.root in roots and item.path[0] == LABELS for item in program.inputs)


def holds(program: Program | None, frame: RuleFrame, *, unknown: bool) -> bool:
    """Return whether a condition is true or absent; `unknown` is the result if the condition is unknown."""
    if program is None:
        return True
    true, lacking = evaluate_columns(program.root, frame)
    return bool(true) or (unknown and bool(lacking))
