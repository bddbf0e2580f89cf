"""`translated_filters`: a policy's filters for one pod as sets of nodes, or why a filter cannot be translated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from policysched.language.evaluation.scalar import ScalarFrame, evaluate
from policysched.language.ir.graph import Program, Typed
from policysched.model.objects import Pod
from policysched.model.policy import PolicyKey
from policysched.rules.compile.policy import CompiledFilter
from policysched.rules.inputs import PodInputs
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.translation.conditions import Approximation, Folded, translate
from policysched.state.cluster import Cluster

CHANGING: Final = frozenset(("age", "image_bytes", "storage_classes"))
"""The fields of `pod.` that may change although the Pod object does not."""


@dataclass(frozen=True, slots=True)
class TranslatedFilter:
    """A policy's filter for one pod, translated to a set of nodes."""

    policy: PolicyKey
    rule: str
    approximation: Approximation | None
    """A set with at least all nodes that pass; None if the filter does not apply to the pod or is not translated."""
    note: str = ""
    """Why there is no set of nodes for the filter; empty if there is one."""
    applies: bool = True
    """Whether the filter applies, or may apply, to the pod."""


def translated_filters(
    policy: ActivePolicy, pod: Pod, cluster: Cluster, *, is_named: bool
) -> Iterator[TranslatedFilter]:
    """Return the translated filters of a policy for one pod.

    Args:
        policy: The policy.
        pod: The pod.
        cluster: The cluster, with the namespace of the pod.
        is_named: Whether the pod has its final name; a pod of a template has not.
    """
    key, fold = policy.policy.key, PodValues(cast("ScalarFrame", PodInputs(pod, cluster)), is_named=is_named)
    outside = policy.selection.unselected(pod, cluster)
    if policy.selection.spares(pod):
        outside = "includeSystemPods is false and the pod is a system pod"
    for rule in policy.policy.filters:
        if outside:
            yield TranslatedFilter(key, rule.name, None, outside, applies=False)
        else:
            yield _translated(key, rule, policy.policy.applies_to, fold)


def _translated(key: PolicyKey, rule: CompiledFilter, applies_to: Program | None, fold: PodValues) -> TranslatedFilter:
    for field, condition in (("appliesTo", applies_to), ("when", rule.when)):
        folded = Folded(True) if condition is None else fold(condition.root)
        if folded is None:
            read = ", ".join(item.text for item in condition.inputs) if condition is not None else ""
            return TranslatedFilter(key, rule.name, None, f"{field} reads {read}, which can change")
        if folded.value is False:
            return TranslatedFilter(key, rule.name, None, f"{field} is false", applies=False)
    return TranslatedFilter(key, rule.name, translate(rule.require.root, fold))


class PodValues:
    """A function that returns the values of expressions which read only fields of a pod that do not change.

    Args:
        frame: The fields of the pod.
        is_named: Whether the pod has its final name.
    """

    def __init__(self, frame: ScalarFrame, *, is_named: bool) -> None:
        self._frame = frame
        self._changing = CHANGING if is_named else CHANGING | {"name"}

    def __call__(self, node: Typed) -> Folded | None:
        """Return the value of an expression; None if it may change or differ between nodes."""
        if not node.local or node.over_pods:
            return None
        if any(item.root != "pod" or item.path[0] in self._changing for item in node.inputs):
            return None
        return Folded(evaluate(node, self._frame))
