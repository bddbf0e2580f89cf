"""Pod groups: pods that are scheduled together, with the fields that scheduling reads.

Source: k8s.io/api/scheduling/v1beta1/types.go, v0.37 and v0.38.
"""

from __future__ import annotations

from policysched.model.objects.meta import Int32, Metadata, Struct
from policysched.model.objects.pods import PodClaimStatus, PodCondition, PodResourceClaim


class BasicSchedulingPolicy(Struct, frozen=True):
    """The policy that schedules the pods of a group in one cycle, whether or not all fit."""


class GangSchedulingPolicy(Struct, frozen=True):
    """The policy that schedules pods of a group only if `min_count` of them fit together."""

    min_count: Int32 = 0


class PodGroupSchedulingPolicy(Struct, frozen=True):
    """The scheduling policy of a pod group; exactly one of its fields is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class AllDisruptionMode(Struct, frozen=True):
    """The disruption mode in which all pods of a group are evicted together."""


class DisruptionMode(Struct, frozen=True):
    """The way in which pods of a group may be evicted: all together if `all` is set, else each alone."""

    all: AllDisruptionMode | None = None


class TopologyConstraint(Struct, frozen=True):
    """A node label of which all nodes of a pod group must have the same value."""

    key: str = ""


class PodGroupSchedulingConstraints(Struct, frozen=True):
    """Constraints on the nodes of a pod group; the API allows one topology."""

    topology: list[TopologyConstraint] = []


class PodGroupSpec(Struct, frozen=True):
    """Spec of a pod group."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: list[PodResourceClaim] = []
    disruption_mode: DisruptionMode | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None


class PodGroupStatus(Struct, frozen=True):
    """Status of a pod group."""

    conditions: list[PodCondition] = []
    resource_claim_statuses: list[PodClaimStatus] = []


class PodGroup(Struct, frozen=True):
    """A group of pods that are scheduled together; pods name their group in `spec.schedulingGroup`."""

    metadata: Metadata = Metadata()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def priority(self) -> int:
        """Priority of the pod group; 0 if the group states none."""
        return self.spec.priority or 0

    @property
    def topology_key(self) -> str | None:
        """Key of the label whose value all nodes of the group share; None without a constraint."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else None

    @property
    def is_disrupted_as_whole(self) -> bool:
        """Whether the pods of the group can only be evicted together."""
        mode = self.spec.disruption_mode
        return mode is not None and mode.all is not None

    @property
    def min_count(self) -> int:
        """Minimum number of pods that have to fit together; 1 without the gang policy."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_count
