"""Warning about profiles whose addedAffinity matches no node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from policysched.framework.profile import Profile
from policysched.model.objects import Node
from policysched.plugins.nodes.node_affinity import NodeAffinity


def profiles_without_nodes(profiles: Iterable[Profile], nodes: Iterable[Node | None]) -> Iterator[str]:
    """Yield a warning for each profile whose addedAffinity matches no node, unless the cluster has no nodes."""
    present = [one for one in nodes if one is not None]
    for profile in profiles if present else ():
        for plugin in profile.filters:
            if isinstance(plugin, NodeAffinity) and plugin.excludes_all(present):
                yield (
                    f'profile "{profile.scheduler_name}": addedAffinity of NodeAffinity matches none of '
                    f"{len(present):,} nodes; pods of this profile stay pending until a node matches"
                )
