"""`dry_run`: what would become of a pod now, over the live cluster, of which nothing is changed and nothing kept.

It decides with an engine beside that of the pod's profile, in slices between which the loop has its turn: cycles come
first. No place is drawn from the scheduler's random source, no node is kept for the pod, and no victim goes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from msgspec.structs import replace

from policysched.errors import UsageError
from policysched.framework import PostFilterResult
from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle import with_extenders
from policysched.schedule.cycle.decision import Decision, drawn
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import Turn, post_filtered
from policysched.schedule.cycle.record import Record, making_record
from policysched.state.cluster import Cluster

T = TypeVar("T")
SLICE: Final = 0.001
"""How long it works before the loop gets its turn. Units: seconds."""
REST: Final = 2.0
"""How many times as long as that it rests: cycles have most of the time."""
AT_ONCE: Final = 2048
"""How many placed pods are looked at in one piece."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """What a dry-run needs of the scheduler around it."""

    monotonic: Callable[[], float]
    tell_time: Callable[[], None]
    """Moves the cluster to the present."""
    state: Callable[[], object]
    """Gives another value once anything has changed that a decision depends on."""
    turns: Callable[[Callable[[], Decision]], Turn]
    """Makes what gives the loop its turn in a search for victims."""

    async def work_through(self, work: T) -> T:
        """Work in slices, and rest after each."""
        while True:
            begin = now = self.monotonic()
            try:
                while now - begin < SLICE:
                    next(work)
                    now = self.monotonic()
            except StopIteration as end:
                made: T = end.value
                return made
            await asyncio.sleep(REST * (now - begin))


async def dry_run(engine: Engine, pod: Pod, policies: PolicySet, rng: random.Random, live: LiveState) -> Record:
    """Say where a pod would go now, and why.

    Args:
        engine: One beside that of the pod's profile.
        pod: A pod that is not placed, with or without a queued one of its name.
        policies: The policies in force.
        rng: What draws among equals.
        live: The scheduler around it.

    Raises:
        UsageError: a pod of its name is on a node.
    """
    node = await live.work_through(_node_of(pod, engine.cluster))
    if node:
        raise UsageError(
            f'pod "{pod.key}" is already on node "{node}": to simulate another pod like it, change its name'
        )
    nomination = engine.cluster.nominations.named(pod.key)
    uid = "" if nomination is None else nomination.pod.metadata.uid
    pod = replace(pod, metadata=replace(pod.metadata, uid=uid))
    await live.work_through(engine.evaluating(pod))
    decision, outcome = await _decided(engine, pod, rng, live)
    return await live.work_through(making_record(drawn(decision, rng), policies.acting(engine.profile), outcome))


async def _decided(
    engine: Engine, pod: Pod, rng: random.Random, live: LiveState
) -> tuple[Decision, PostFilterResult | None]:
    """Decide, and decide again where the cluster has changed while others were asked."""
    extenders = engine.profile.extending(pod)
    anew = partial(engine.decide, pod)
    if extenders:
        answers = await with_extenders.ask(engine, pod, extenders)
        anew = partial(with_extenders.choose, engine, pod, answers, moved=True)
    live.tell_time()
    decision, before = anew(), live.state()
    outcome = await post_filtered(engine, decision, rng, extenders, live.turns(anew))
    if live.state() != before:
        live.tell_time()
        decision = anew()
    return decision, None if decision.row >= 0 or decision.failed else outcome


def _node_of(pod: Pod, cluster: Cluster) -> str:
    """Find the node of the placed pod of the same name; empty where there is none."""
    wanted = pod.metadata
    for number, one in enumerate([*cluster.pods.by_id.values()]):
        metadata = one.pod.metadata
        if metadata.name == wanted.name and metadata.namespace == wanted.namespace:
            return cluster.nodes.names[one.row]
        if not number % AT_ONCE:
    return ""
