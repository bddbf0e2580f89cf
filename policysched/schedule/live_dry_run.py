"""`dry_run` and `dry_run_group`: decide about a pod or a pod group in the live cluster without placing it.

The decision runs between two scheduling cycles, in an engine of its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from policysched.errors import UsageError
from policysched.framework import PostFilterResult
from policysched.model.objects import Pod, PodGroup
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle import with_extenders
from policysched.schedule.cycle.decision import Decision, drawn
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import post_filtered
from policysched.schedule.cycle.record import Record, make_record
from policysched.schedule.groups.dry_run import creation_key
from policysched.schedule.groups.record import make_group_record
from policysched.state.cluster import Cluster


async def dry_run(
    engine: Engine, pod: Pod, policies: PolicySet, rng: random.Random, update_time: Callable[[], None]
) -> Record:
    """Decide about a pod in the live cluster without placing it, and return the decision record.

    Args:
        engine: A separate engine of the pod's profile.
        pod: A pod that is not placed, with or without a queued pod of its name.
        policies: The policies in force.
        rng: Random generator that chooses among equally good nodes.
        update_time: Sets the time of the cluster to now.

    Raises:
        UsageError: A pod of its name is on a node.
    """
    _refuse_placed(pod, engine.cluster)
    nomination = engine.cluster.nominations.named(pod.key)
    uid = "" if nomination is None else nomination.pod.metadata.uid
    pod = replace(pod, metadata=replace(pod.metadata, uid=uid))
    decision, outcome = await _decided(engine, pod, rng, update_time)
    return make_record(drawn(decision, rng), policies.acting(engine.profile), outcome)


def dry_run_group(
    engine: Engine, pods: Sequence[Pod], given: PodGroup | None, policies: PolicySet, rng: random.Random
) -> Record:
    """Decide about a pod group in the live cluster without placing it, and return the decision record.

    Args:
        engine: A separate engine of the pods' profile.
        pods: Pods of the group that are not placed; a queued pod of the same name is replaced.
        given: The PodGroup object, if it does not exist yet or is to be replaced.
        policies: The policies in force.
        rng: Random generator that chooses among equally good nodes.

    Raises:
        UsageError: A pod is on a node, the group does not exist, or extenders are interested in a pod.
    """
    for pod in pods:
        _refuse_placed(pod, engine.cluster)
        if engine.profile.extending(pod):
            raise UsageError("a dry-run of a pod group cannot call extenders")
    with _replaced(given, engine.cluster):
        groups = engine.cluster.pod_groups
        state = None if groups is None else groups.of_pod(pods[0])
        known = () if state is None else sorted(state.unscheduled.values(), key=creation_key)
        waiting = {pod.key: pod for pod in known}
        uids = {key: pod.metadata.uid for key, pod in waiting.items()}
        new = [replace(pod, metadata=replace(pod.metadata, uid=uids.get(pod.key, ""))) for pod in pods]
        members = [*(waiting | {pod.key: pod for pod in new}).values()]
        return make_group_record(engine, members, rng, policies.acting(engine.profile))


@contextmanager
def _replaced(group: PodGroup | None, cluster: Cluster) -> Iterator[None]:
    """Add or replace a PodGroup object in the cluster inside this context, and restore the object afterwards."""
    groups = cluster.pod_groups
    if group is None or groups is None:
        yield
        return
    state = groups.get(group.key)
    before = None if state is None else state.group
    groups.put(group)
    try:
        yield
    finally:
        if before is None:
            groups.drop(group)
        else:
            groups.put(before)


async def _decided(
    engine: Engine, pod: Pod, rng: random.Random, update_time: Callable[[], None]
) -> tuple[Decision, PostFilterResult | None]:
    """Return the decision about a pod; decide again if the cluster changed while extenders were called."""
    extenders = engine.profile.extending(pod)
    update_time()
    if not extenders:
        decision = engine.decide(pod)
        return decision, await post_filtered(engine, decision, rng)
    answers = await with_extenders.ask(engine, pod, extenders)
    update_time()
    decision = with_extenders.choose(engine, pod, answers, moved=True)
    outcome = await post_filtered(engine, decision, rng, extenders)
    if outcome is None:
        return decision, None
    update_time()
    decision = with_extenders.choose(engine, pod, answers, moved=True)
    return decision, None if decision.row >= 0 or decision.failed else outcome


def _refuse_placed(pod: Pod, cluster: Cluster) -> None:
    node = _node_of(pod, cluster)
    if node:
        raise UsageError(
            f'pod "{pod.key}" is already on node "{node}": to simulate another pod like it, change its name'
        )


def _node_of(pod: Pod, cluster: Cluster) -> str:
    """Return the node on which a pod of the given pod's name is placed; empty if no pod of that name is placed."""
    named = (one for one in cluster.pods.by_id.values() if one.pod.key == pod.key)
    placed = next(named, None)
    return "" if placed is None else cluster.nodes.names[placed.row]
