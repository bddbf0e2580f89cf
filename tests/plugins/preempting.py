"""Worlds in which a pod has to take the place of others, and what DefaultPreemption says of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster, PostFilterResult
from policysched.model.objects import (
    LabelSelector,
    Metadata,
    Node,
    Pod,
    PodCondition,
    PodDisruptionBudget,
    PodGroup,
    PodStatus,
)
from policysched.model.objects.cluster import PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from policysched.model.release import DEFAULT, Release
from policysched.plugins.default_preemption.plugin import DefaultPreemption, PreemptionArguments, PreemptionDetails
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle
from tests.build import cluster, pod
from tests.plugins.inter_pod_affinity.build import label

NOW = 1_800_000_000.0


CORES = {"cpu": 4}


def low(name: str, on: str, priority: int = 0, *, cpu: int = 4, minute: int | None = 0, **more: Any) -> Pod:
    """A placed pod that takes a node of four cores, having started at a minute, or not yet."""
    made = pod(name, on=on, requests={"cpu": cpu}, priority=priority, **more)
    start = None if minute is None else f"2026-01-01T00:{minute:02}:00Z"
    return replace(made, status=PodStatus(start_time=start))


def going(of: Pod, reason: str = "PreemptionByScheduler") -> Pod:
    told = [PodCondition(type="DisruptionTarget", status="True", reason=reason)]
    metadata = replace(of.metadata, deletion_timestamp="2026-01-01T01:00:00Z")
    return replace(of, metadata=metadata, status=replace(of.status, conditions=told))


def budget(
    name: str, selector: LabelSelector | None, allowed: int = 0, disrupted: Mapping[str, str | None] | None = None
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=Metadata(name=name, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods=dict(disrupted or {})),
    )


def wanted(cpu: int = 4, priority: int = 10, **spec: Any) -> Pod:
    return pod("wanted", requests={"cpu": cpu}, priority=priority, **spec)


def world(
    *objects: Node | Pod,
    budgets: Iterable[PodDisruptionBudget] = (),
    groups: Iterable[PodGroup] = (),
    release: Release = DEFAULT,
) -> Cluster:
    made = cluster(*objects, release=release)
    made.time.move(NOW)
    for one in (*groups, *budgets):
        made.take(one)
    return made


def preempt(around: Cluster, of: Pod, given: PreemptionArguments | None = None) -> PostFilterResult:
    decision = Engine(around, default_profile(), random.Random(0)).decide(of)
    assert decision.row < 0
    return DefaultPreemption(given).post_filter(of, FailedCycle(decision, random.Random(0)))


def chosen(around: Cluster, of: Pod) -> tuple[str | None, list[str]]:
    result = preempt(around, of)
    assert result.status is None, result.status
    return result.nominated_node, [one.metadata.name for one in result.victims]


def best(around: Cluster, of: Pod) -> list[str]:
    details = preempt(around, of).details
    assert isinstance(details, PreemptionDetails)
    return details.choice.best


def said(around: Cluster, of: Pod) -> tuple[str, str | None]:
    result = preempt(around, of)
    assert result.status is not None
    return result.status.message, result.nominated_node


WEB = label("app", "web")


LABELS = {"app": "web"}


class OneByOne(FailedCycle):
    """A decision that answers for no more than one node at a time."""

    def verdicts(self, changed: Any) -> None:  # noqa: ARG002 - the protocol's signature
        return None


def outcome(failed: FailedCycle, given: PreemptionArguments | None = None) -> Any:
    """What a preemption comes to: every candidate and the best ones, or what is said."""
    result = DefaultPreemption(given).post_filter(failed.pod, failed)
    if result.status is not None:
        return result.status, result.nominated_node
    assert isinstance(result.details, PreemptionDetails)
    choice = result.details.choice
    return result.nominated_node, choice.best, list(choice.candidates())
