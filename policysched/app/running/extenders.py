"""The extenders of a running process: created from its configuration, replaced on changes, closed at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

from policysched.app.configuration.extenders import make_extenders
from policysched.app.configuration.model import Configuration, ExtenderConfig
from policysched.extenders.http_extender import HttpExtender
from policysched.framework.profile import Profile
from policysched.kube.object_texts import MANAGED, KeptTexts, WantedTexts
from policysched.model.objects import Node, Pod
from policysched.state.placed.pods import pod_id


class RunningExtenders:
    """The current extenders, and the raw JSON of the objects that extenders receive.

    Args:
        configuration: The initial configuration, or None.
        may_bind: Whether bind requests may be sent.

    Raises:
        UsageError: an extender's URL or certificate is invalid.
    """

    def __init__(self, configuration: Configuration | None, may_bind: Callable[[], bool] = lambda: True) -> None:
        self._may_bind = may_bind
        self.nodes: KeptTexts[Node] = KeptTexts(lambda node: node.metadata.name)
        """Raw JSON of the watched nodes, while an extender needs whole nodes."""
        self.pods: KeptTexts[Pod] = KeptTexts(pod_id, MANAGED)
        """Raw JSON of the watched pods, while an extender needs whole pods."""
        self._named: tuple[ExtenderConfig, ...] = () if configuration is None else configuration.extenders
        self.present = () if configuration is None else make_extenders(configuration, self, may_bind)
        """The current extenders in order."""
        self._of_dry_runs: dict[str, bytes] = {}
        """Raw JSON of the pods of current dry-runs, by identity."""
        self._keep_for(self.present)

    @contextmanager
    def providing(self, identity: str, text: bytes) -> Iterator[None]:
        """Provide the JSON of a pod that is not watched, inside this context."""
        self._of_dry_runs[identity] = text
        try:
            yield
        finally:
            del self._of_dry_runs[identity]

    def pod(self, pod: Pod) -> bytes | None:
        """Return the JSON of a pod, or None if the pod was deleted."""
        identity = pod_id(pod)
        return self.pods.get(identity) or self._of_dry_runs.get(identity)

    def node(self, name: str) -> bytes | None:
        """Return the JSON of a node, or None if the node was deleted."""
        return self.nodes.get(name)

    @asynccontextmanager
    async def changed_to(self, configuration: Configuration) -> AsyncIterator[Sequence[HttpExtender]]:
        """Yield the extenders of a changed configuration; use the old extenders again if an exception occurs.

        Raises:
            UsageError: an extender's URL or certificate is invalid.
        """
        before = made = self.present
        if configuration.extenders != self._named:
            made = make_extenders(configuration, self, self._may_bind)
            self._keep_for((*before, *made))
        stay = before
        try:
            yield made
            self._named, self.present, stay = configuration.extenders, made, made
        finally:
            self._keep_for(stay)
            for one in {*before, *made}.difference(stay):
                await one.retire()

    async def close(self) -> None:
        """Close all connections."""
        for one in self.present:
            await one.retire()

    def _keep_for(self, extenders: Iterable[HttpExtender]) -> None:
        """Select the kinds of objects whose raw JSON is stored for the given extenders."""
        needed = [one.needed_objects for one in extenders]
        self.nodes.want(WantedTexts.ALL if any(one.nodes for one in needed) else WantedTexts.NONE)
        pods = [WantedTexts.ALL if one.victims else WantedTexts.PENDING for one in needed if one.pods]
        self.pods.want(max(pods, default=WantedTexts.NONE))


def with_extenders(profiles: Mapping[str, Profile], extenders: Sequence[HttpExtender]) -> dict[str, Profile]:
    """Return profiles that use the given extenders."""
    return {name: replace(profile, extenders=tuple(extenders)) for name, profile in profiles.items()}
