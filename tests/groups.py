"""Pod groups and their pods for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from policysched.model.objects import (
    BasicSchedulingPolicy,
    GangSchedulingPolicy,
    Metadata,
    Pod,
    PodGroup,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodSchedulingGroup,
    TopologyConstraint,
)
from policysched.model.release import V1_37, V1_38
from tests.build import pod

GATED = replace(V1_37, generic_workload=True)
GATED_38 = replace(V1_38, generic_workload=True)
CLAIMS = replace(GATED, workload_claims=True)
CLAIMS_38 = replace(GATED_38, workload_claims=True)
TOPOLOGY = replace(GATED, topology_aware=True)
TOPOLOGY_38 = replace(GATED_38, topology_aware=True)


def group(name: str = "g", least: int | None = None, *, uid: str = "", key: str = "", **spec: Any) -> PodGroup:
    """A pod group of the default namespace: a gang of at least `least` pods, or a basic group; `key`: its topology."""
    if key:
        spec["scheduling_constraints"] = PodGroupSchedulingConstraints(topology=[TopologyConstraint(key=key)])
    gang = None if least is None else GangSchedulingPolicy(min_count=least)
    policy = PodGroupSchedulingPolicy(gang=gang, basic=BasicSchedulingPolicy() if gang is None else None)
    metadata = Metadata(name=name, namespace="default", uid=uid or f"uid-{name}")
    return PodGroup(metadata=metadata, spec=PodGroupSpec(scheduling_policy=policy, **spec))


def member(name: str = "p", of: str = "g", **fields: Any) -> Pod:
    """A pod of a group."""
    return pod(name, scheduling_group=PodSchedulingGroup(pod_group_name=of), **fields)
