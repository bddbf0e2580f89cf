"""Measurement of the time that out-of-tree plugins need per decision, on generated nodes.

Nodes differ only in their names, and so do pods; a plugin that reads other objects can need another time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Final

from policysched.app.configuration.profiles import configured_profiles
from policysched.framework.out_of_tree.watch import PluginWatch
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.model.decode import decode_node, decode_pod
from policysched.model.release import DEFAULT, Release
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster

DECISIONS: Final = 20
_AMOUNTS: Final = {"cpu": "64", "memory": "256Gi", "pods": "110"}


def measured_times(
    config: str, registry: PluginRegistry, nodes: int, seconds: Callable[[], float], release: Release = DEFAULT
) -> dict[str, float]:
    """Return the measured times per decision of the out-of-tree plugins that a configuration enables.

    Args:
        config: The configuration, as text.
        registry: The out-of-tree plugins.
        nodes: Number of nodes.
        seconds: The clock.
        release: The Kubernetes release of the default plugins.

    Returns:
        Time per decision by plugin, up to Score; the largest of several profiles. Units: microseconds.

    Raises:
        UsageError: the configuration is invalid.
    """
    found: dict[str, float] = {}
    for profile in configured_profiles(config, registry, release=release).values():
        for name, taken in _taken(profile, nodes, seconds, release):
            found[name] = max(found.get(name, 0.0), taken)
    return found


def _taken(profile: Profile, nodes: int, seconds: Callable[[], float], release: Release) -> Iterable[tuple[str, float]]:
    cluster, handle = Cluster(release=release), profile.handle
    if handle is None:
        return ()
    for number in range(nodes):
        node = {"metadata": {"name": f"node-{number}"}, "status": {"allocatable": _AMOUNTS}}
        cluster.set_node(decode_node(node))
    handle.connect(cluster)
    handle.watch = PluginWatch(seconds)
    engine = Engine(cluster, profile, random.Random(0))  # noqa: S311 - draws among equals
    for number in range(DECISIONS):
        metadata = {"name": f"pod-{number}", "namespace": "default", "uid": f"{number}"}
        engine.decide(decode_pod({"metadata": metadata, "spec": {"schedulerName": profile.scheduler_name}}))
    names = dict.fromkeys(name for name, _ in handle.watch.spent)
    spent = handle.watch.spent.items()
    return [(name, 1e6 / DECISIONS * sum(one.seconds for (own, _), one in spent if own == name)) for name in names]
