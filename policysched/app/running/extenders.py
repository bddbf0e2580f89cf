"""The extenders of a running process: made of its configuration, again whenever that names others, ended with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from policysched.app.configuration.extenders import make_extenders
from policysched.app.configuration.model import Configuration, ExtenderConfig
from policysched.extenders.http_extender import HttpExtender
from policysched.framework.profile import Profile
from policysched.kube.object_texts import NodeTexts, WatchedTexts
from policysched.kube.transport import Transport


class RunningExtenders:
    """The extenders that take part now, and those whose last requests may still be under way.

    Args:
        transport: How objects are read that extenders are sent.
    """

    def __init__(self, transport: Transport) -> None:
        self.nodes = NodeTexts()
        """The nodes as they are watched, while an extender needs them."""
        self._texts = WatchedTexts(transport, self.nodes)
        self._named: tuple[ExtenderConfig, ...] = ()
        self._present: tuple[HttpExtender, ...] = ()
        self._made: list[HttpExtender] = []

    def added_to(self, profiles: Mapping[str, Profile], configuration: Configuration | None) -> dict[str, Profile]:
        """Return profiles with the extenders of a configuration.

        Raises:
            UsageError: an extender's URL or certificate cannot be used.
        """
        named = () if configuration is None else configuration.extenders
        if configuration is not None and named != self._named:
            made = make_extenders(configuration, self._texts)
            self._named, self._present = named, made
            self._made += made
            asked = (one for one in named if one.filter_verb or one.prioritize_verb)
            self.nodes.wanted = self.nodes.wanted or any(not one.node_cache_capable for one in asked)
        return {name: replace(profile, extenders=self._present) for name, profile in profiles.items()}

    async def close(self) -> None:
        """Close all connections."""
        for one in self._made:
            await one.close()
