"""Namespaces whose labels a policy's filters depend on and that the scheduler has not heard of.

A namespace exists before its pods do, but each kind has a watch of its own: a pod can be heard of first, and a watch
that fails can hide namespaces for long. A pod then waits, because to take the labels as missing could lift a
restriction. Scores go on without them: a preference holds no pod back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from policysched.framework import Status, unresolvable
from policysched.language.ir.graph import Program
from policysched.model.objects import Pod
from policysched.rules.compiled import CompiledPolicy
from policysched.state.cluster import Cluster

_LABELS: Final = "namespace_labels"
Holds = Callable[[Program | None], bool]
"""Tells whether a condition over the pod may hold."""


def reads_labels(program: Program | None, *roots: str) -> bool:
    """Tell whether a program reads labels of the pod's own namespace (`pod`) or of placed pods' (`peer`)."""
    return program is not None and any(item.root in roots and item.path[0] == _LABELS for item in program.inputs)


def selects_by_labels(policy: CompiledPolicy) -> bool:
    """Tell whether it depends on a namespace's labels which pods a policy acts on."""
    return policy.namespaces is not None and bool(policy.namespaces.requirements)


def filters_depend(policy: CompiledPolicy) -> bool:
    """Tell whether a policy's filters depend on labels of namespaces at all."""
    programs = policy.filter_programs
    return bool(policy.filters) and (
        selects_by_labels(policy) or any(reads_labels(program, "pod", "peer") for program in programs)
    )


def unknown_namespace(policy: CompiledPolicy, pod: Pod, cluster: Cluster, holds: Holds) -> str | None:
    """Name the unknown namespace that the filters for a pod depend on.

    Missing: None where they depend on none.
    """
    own = pod.metadata.namespace
    is_known = own in cluster.namespaces

    def may_hold(program: Program | None) -> bool:
        return (not is_known and reads_labels(program, "pod")) or holds(program)

    if not may_hold(policy.applies_to):
        return None
    speaking = [rule for rule in policy.filters if may_hold(rule.when)]
    if not is_known and speaking:
        programs = (policy.applies_to, *(one for rule in speaking for one in (rule.when, rule.require)))
        if selects_by_labels(policy) or any(reads_labels(program, "pod") for program in programs):
            return own
    if any(reads_labels(rule.require, "peer") for rule in speaking):
        return min(cluster.unknown_namespaces, default=None)
    return None


def not_known(policy: str, namespace: str) -> Status:
    """Reject a pod until a namespace is known."""
    return unresolvable(f'policy {policy}: namespace "{namespace}" is not known yet')
