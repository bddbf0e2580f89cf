"""A dry-run that HTTP extenders take part in: they are really asked to filter and to score, and never to bind.

They are sent the objects of the dry-run as they were given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from policysched.app.configuration.extenders import make_extenders
from policysched.app.configuration.model import Configuration
from policysched.kube.object_texts import MANAGED, without
from policysched.model.kinds import NODES
from policysched.model.objects import Pod
from policysched.schedule.cycle import extending
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine

Object = Mapping[str, Any]


class GivenTexts:
    """Objects from files as JSON.

    Args:
        pod: The pod that is decided for.
        objects: All others.
    """

    def __init__(self, pod: Object, objects: Iterable[Object]) -> None:
        self._pod = pod
        self._nodes = {str(one["metadata"]["name"]): one for one in objects if one["kind"] == NODES.kind}

    async def pod(self, pod: Pod) -> bytes:  # noqa: ARG002 - there is one
        """Return the pod."""
        return without(_text(self._pod), MANAGED)

    async def nodes(self, names: Sequence[str]) -> list[bytes]:
        """Return nodes."""
        return [without(_text(self._nodes[name])) for name in names]


def _text(obj: Object) -> bytes:
    return msgspec.json.encode(dict(obj))


def decide(engine: Engine, pod: Pod, configuration: Configuration | None, texts: GivenTexts) -> Decision:
    """Decide with the extenders of a configuration, if it has any.

    Raises:
        UsageError: an extender's URL or certificate cannot be used.
    """
    if configuration is None or not configuration.extenders:
        return engine.decide(pod)
    return asyncio.run(_decide(engine, pod, configuration, texts))


async def _decide(engine: Engine, pod: Pod, configuration: Configuration, texts: GivenTexts) -> Decision:
    extenders = make_extenders(configuration, texts)
    try:
        interested = [one for one in extenders if one.is_interested(pod)]
        if not interested:
            return engine.decide(pod)
        return extending.choose(engine, pod, await extending.ask(engine, pod, interested))
    finally:
        for one in extenders:
            await one.close()
