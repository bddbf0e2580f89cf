"""The arguments of NodeAffinity, turned into the plugin.

Knows the shape of the `pluginConfig` entry; which affinity is valid is known where affinities are compiled.

Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

from policysched.model import objects
from policysched.model.selectors import SelectorError
from policysched.plugins.arguments import Arguments, PluginArguments, converted, refusal
from policysched.plugins.node_affinity import NodeAffinity


class NodeAffinityArguments(PluginArguments, frozen=True):
    """The arguments of NodeAffinity."""

    added_affinity: objects.NodeAffinity | None = None


def node_affinity(arguments: Arguments) -> NodeAffinity:
    """Make NodeAffinity.

    Raises:
        UsageError: the added affinity is not valid.
    """
    added = converted(NodeAffinity.name, arguments, NodeAffinityArguments).added_affinity
    try:
        return NodeAffinity(added)
    except SelectorError as error:
        raise refusal(NodeAffinity.name, "addedAffinity", str(error)) from error
