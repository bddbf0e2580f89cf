"""The API for authors of Python plugins, see docs/extend/plugins.md.

A plugin is a class with one method for each extension point that it uses. `policysched.framework.out_of_tree.methods`
lists the signatures as protocols; a plugin does not have to inherit them.
"""

from policysched.framework import (
    MAX_NODE_SCORE,
    Action,
    ApiError,
    Aspect,
    Code,
    CustomResource,
    Hint,
    PostFilterResult,
    Resource,
    Status,
    Wait,
    WaitingPod,
    unresolvable,
    unschedulable,
)
from policysched.framework.cycle_state import CycleState
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.out_of_tree.methods import (
    NodeScore,
    NodeStatuses,
    PreBindPreFlightResult,
    PreFilterResult,
    QueuedPodInfo,
    Rejections,
)
from policysched.framework.out_of_tree.node_info import NodeArrays, NodeInfo
from policysched.framework.registry import PluginFactory, PluginRegistry
from policysched.model.objects import Node, Pod

__all__ = [
    "MAX_NODE_SCORE",
    "Action",
    "ApiError",
    "Aspect",
    "Code",
    "CustomResource",
    "CycleState",
    "Hint",
    "Node",
    "NodeArrays",
    "NodeInfo",
    "NodeScore",
    "NodeStatuses",
    "PluginFactory",
    "PluginHandle",
    "PluginRegistry",
    "Pod",
    "PostFilterResult",
    "PreBindPreFlightResult",
    "PreFilterResult",
    "QueuedPodInfo",
    "Rejections",
    "Resource",
    "Status",
    "Wait",
    "WaitingPod",
    "unresolvable",
    "unschedulable",
]
