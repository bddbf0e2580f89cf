"""Helpers to test one plugin: a framework handle, a decision with the plugin alone, a configuration that enables it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from policysched.app.dry_run.dry_run import dry_run
from policysched.app.plugins.factories import CheckedFactory, stated_name
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.registry import PluginRegistry
from policysched.model.decode import decode_node
from policysched.model.release_choice import AUTO, release_named
from policysched.plugins.arguments import API_VERSION
from policysched.state.cluster import Cluster
from policysched.testing.objects import PROFILE, Object, read_pod


def connected_handle(
    nodes: Iterable[Object] = (), pods: Iterable[Object] = (), kube_version: str = AUTO
) -> PluginHandle:
    """Return a framework handle on a cluster with these nodes and placed pods, for tests that call plugin methods."""
    cluster = Cluster(release=release_named(kube_version))
    for node in nodes:
        cluster.set_node(decode_node(node))
    for pod in pods:
        cluster.set_pod(read_pod(pod, kube_version))
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
    kube_version: str = AUTO,
) -> dict[str, Any]:
    """Run a scheduling cycle for a pod with only this plugin, and return the decision.

    Args:
        factory: The plugin's class, or another factory.
        pod: The pod, as `make_pod` returns it.
        nodes: The nodes, as `make_node` returns them.
        pods: Placed pods.
        args: The plugin's arguments in `pluginConfig`.
        kube_version: The Kubernetes minor whose kube-scheduler decides, as `policysched.dry_run` takes it.

    Returns:
        The decision record, see docs/reference/decision-record.md.

    Raises:
        UsageError: the factory or the arguments are invalid.
    """
    name = stated_name(factory)
    registry = PluginRegistry()
    checked = CheckedFactory(name, factory)
    registry.register(name, checked)
    needed = [{"name": one} for one in ("PrioritySort", "DefaultBinder", name)]
    multi_point = {"enabled": needed, "disabled": [{"name": "*"}]}
    config = configuration_of(checked, {"multiPoint": multi_point}, args)
    objects = [*nodes, *pods]
    return dry_run(objects, pod, config=config, plugins=registry, seed=0, kube_version=kube_version).to_dict()


def configuration_of(factory: CheckedFactory, plugins: Object, args: Mapping[str, Any] | None) -> Object:
    """Return a KubeSchedulerConfiguration that enables a plugin.

    A plugin that sorts the queue replaces PrioritySort. A plugin that binds comes before DefaultBinder.
    """
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
