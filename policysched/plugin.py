"""The API of out-of-tree plugins: what their authors import.

A plugin is a class with methods of the extension points where it acts. `framework.out_of_tree.methods` has their
signatures, as protocols that nobody needs to inherit.
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
