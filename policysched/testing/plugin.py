"""One plugin alone: a handle for its methods, a decision in which it takes part, a configuration that enables it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from policysched.app.dry_run.dry_run import dry_run
from policysched.app.plugins.factories import CheckedFactory, stated_name
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.registry import PluginRegistry
from policysched.model.decode import decode_node
from policysched.plugins.arguments import API_VERSION
from policysched.state.cluster import Cluster
from policysched.testing.objects import PROFILE, Object, read_pod


def connected_handle(nodes: Iterable[Object] = (), pods: Iterable[Object] = ()) -> PluginHandle:
    """Make a handle on some nodes and the pods that are on them, for tests that call the methods of plugins."""
    cluster = Cluster()
    for node in nodes:
        cluster.set_node(decode_node(node))
    for pod in pods:
        cluster.set_pod(read_pod(pod))
    handle = PluginHandle(PROFILE)
    handle.connect(cluster)
    return handle


def decide(
    factory: Callable[..., Any],
    pod: Object,
    nodes: Iterable[Object],
    *,
    pods: Iterable[Object] = (),
    args: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Say where a pod would go if there were this plugin alone.

    Args:
        factory: The plugin's class, or what else its entry point names.
        pod: The pod.
        nodes: The nodes.
        pods: The pods that are on them.
        args: What `pluginConfig` has for the plugin.

    Returns:
        The decision record of docs/write/dry-run.md.

    Raises:
        UsageError: the plugin cannot be made.
    """
    name = stated_name(factory)
    registry = PluginRegistry()
    checked = CheckedFactory(name, factory)
    registry.register(name, checked)
    needed = [{"name": one} for one in ("PrioritySort", "DefaultBinder", name)]
    multi_point = {"enabled": needed, "disabled": [{"name": "*"}]}
    config = configuration_of(checked, {"multiPoint": multi_point}, args)
    return dry_run([*nodes, *pods], pod, config=config, plugins=registry, seed=0).to_dict()


def configuration_of(factory: CheckedFactory, plugins: Object, args: Mapping[str, Any] | None) -> Object:
    """Enable a plugin, in the place of PrioritySort where it sorts and before DefaultBinder where it binds."""
    name, made = factory.name, factory.makes()
    entries = [] if args is None else [{"name": name, "args": dict(args)}]
    if hasattr(made, "less"):
        plugins["queueSort"] = {"disabled": [{"name": "PrioritySort"}]}
    if hasattr(made, "bind"):
        plugins["bind"] = {"enabled": [{"name": name}]}
    return {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": PROFILE, "plugins": plugins, "pluginConfig": entries}],
    }
