"""Where a pod may go or would like to go: node and pod affinity, spreading, tolerations.

Only the shapes; what they mean is in `policysched.model.selection` and the plugins.

Source: k8s.io/api/core/v1/types.go, v0.36.
"""

from __future__ import annotations

import msgspec

from policysched.model.objects.meta import Int32, LabelSelector, Requirement, Struct


class Toleration(Struct, frozen=True):
    """A pod's toleration; `operator` empty means Equal, `effect` empty means every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorTerm(Struct, frozen=True):
    """Requirements on labels and fields of a node, all of which must hold."""

    match_expressions: list[Requirement] = []
    match_fields: list[Requirement] = []


class NodeSelector(Struct, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(Struct, frozen=True):
    """A term that adds `weight` to a node's score."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Struct, frozen=True):
    """A pod's wishes about nodes."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Struct, frozen=True):
    """Pods to be near to or away from."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(Struct, frozen=True):
    """A preferred pod affinity term."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True):
    """Affinity or anti-affinity to pods."""

    required: list[PodAffinityTerm] = msgspec.field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Struct, frozen=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct, frozen=True):
    """How evenly matching pods must be spread over a topology."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []
