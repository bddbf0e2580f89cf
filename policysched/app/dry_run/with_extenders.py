"""A dry-run with the configured extenders: calls Filter, Prioritize and preemption, never Bind.

Bind is never called. Extenders receive the objects of the dry-run as given.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from policysched.app.configuration.extenders import make_extenders
from policysched.app.configuration.model import Configuration
from policysched.framework import PostFilterResult
from policysched.kube.object_texts import MANAGED, without
from policysched.model.kinds import NODES, PODS
from policysched.model.objects import Pod
from policysched.schedule.cycle import with_extenders
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import post_filtered

Object = Mapping[str, Any]


class GivenTexts:
    """Source of given objects as JSON, for extenders."""

    def __init__(self, pods: Sequence[Object], objects: Sequence[Object]) -> None:
        self._pods, self._objects = {_key_of(one): one for one in pods}, objects

    def pod(self, pod: Pod) -> bytes:
        """Return the JSON of a placed pod, or of a pod to schedule."""
        given = self._placed.get(pod.metadata.uid or pod.key)
        return without(_text(self._pods[pod.key] if given is None else given), MANAGED)

    def node(self, name: str) -> bytes:
        """Return the JSON of a node."""
        return without(_text(self._nodes[name]))

    @cached_property
    def _nodes(self) -> dict[str, Object]:
        return {str(one["metadata"]["name"]): one for one in self._objects if one["kind"] == NODES.kind}

    @cached_property
    def _placed(self) -> dict[str, Object]:
        """Pods that have a node, by identity."""
        found = {}
        for one in self._objects:
            if one["kind"] == PODS.kind and (one.get("spec") or {}).get("nodeName"):
                found[str(one["metadata"].get("uid") or _key_of(one))] = one
        return found


def _key_of(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def _text(obj: Object) -> bytes:
    return msgspec.json.encode(dict(obj))


async def decide(
    engine: Engine, pod: Pod, configuration: Configuration, texts: GivenTexts, rng: random.Random
) -> tuple[Decision, PostFilterResult | None]:
    """Decide with the extenders of a configuration; run PostFilter if no node is feasible.

    Raises:
        UsageError: an extender's URL or certificate is invalid.
    """
    extenders = make_extenders(configuration, texts)
    try:
        interested = [one for one in extenders if one.is_interested(pod)]
        if interested:
            decision = with_extenders.choose(engine, pod, await with_extenders.ask(engine, pod, interested))
        else:
            decision = engine.decide(pod)
        return decision, await post_filtered(engine, decision, rng, interested)
    finally:
        for one in extenders:
            await one.retire()
