"""Why a policy has no say about a pod, in words: for people who expect it to have one."""

from __future__ import annotations

from typing import Final

from policysched.framework import SKIP, Cluster
from policysched.language.evaluation.columns import evaluate_columns
from policysched.model.objects import Pod
from policysched.model.priority import is_system
from policysched.rules.compiled import CompiledPolicy
from policysched.rules.plugin import PolicyPlugin
from policysched.rules.shared import Shared

LONGEST: Final = 80
"""How much of an expression is shown. Units: characters."""
_SYSTEM: Final = "leave pods of priority 2000000000 and above alone: includeSystemPods is not set"


def why_silent(policy: CompiledPolicy, pod: Pod, cluster: Cluster) -> str:
    """Say why a policy, or all of its filters, say nothing about a pod; empty where they do.

    Args:
        policy: What is in force of the policy.
        pod: The pod, with the scheduler name of its profile.
        cluster: The cluster that the rules see.
    """
    if policy.spec.mode == "Disabled":
        return "mode is Disabled"
    plugin = PolicyPlugin(policy)
    if not policy.filters and not policy.scores:
        return "it has no filters and no scores"
    if plugin.prepare_filter(pod, cluster) is not SKIP:
        return ""
    if plugin.prepare_score(pod, cluster) is not SKIP:
        return f"its filters {_SYSTEM}" if policy.filters and _spared(policy, pod) else ""
    return _unselected(policy, pod, cluster) or _not_meant(policy, pod, plugin.shared(cluster))


def _spared(policy: CompiledPolicy, pod: Pod) -> bool:
    return is_system(pod) and not policy.spec.include_system_pods


def _unselected(policy: CompiledPolicy, pod: Pod, cluster: Cluster) -> str:
    name, namespace = pod.spec.scheduler_name, pod.metadata.namespace
    if policy.spec.scheduler_names and name not in policy.spec.scheduler_names:
        return f'schedulerNames ({", ".join(policy.spec.scheduler_names)}) do not hold "{name}"'
    if policy.pods is not None and not policy.pods.matches(pod.metadata.labels):
        return "podSelector does not match the pod's labels"
    labels = cluster.namespaces.get(namespace, {})
    if policy.namespaces is not None and not policy.namespaces.matches(labels):
        unknown = "" if labels else ", of which none are known: its Namespace object is missing"
        return f'namespaceSelector does not match the labels of namespace "{namespace}"{unknown}'
    return ""


def _not_meant(policy: CompiledPolicy, pod: Pod, shared: Shared) -> str:
    if policy.applies_to is not None:
        true, lacking = evaluate_columns(policy.applies_to.root, shared.plain(shared.subject(pod)))
        if not true:
            text = " ".join((policy.spec.applies_to or "").split())
            shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
            return f"appliesTo {'has no value' if lacking else 'is false'}: {shown}"
    if _spared(policy, pod) and not policy.scores:
        return f"its filters {_SYSTEM}"
    return "no rule's `when` holds"
