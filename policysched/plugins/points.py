"""The extension points of kube-scheduler, and which of its plugins act at which.

Knows names only. A configuration enables plugins by point, and one that names a plugin at a point where it has
nothing to do is refused, whether that point does anything here or not.

Source: pkg/scheduler/framework/runtime/framework.go (getExtensionPoints), framework/plugins, v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MULTI_POINT: Final = "multiPoint"
"""Where a configuration enables plugins at all the points where they act."""
_FILTERING: Final = frozenset({"preFilter", "filter"})
_SCORING: Final = frozenset({"preScore", "score"})
ACTS_AT: Final[Mapping[str, frozenset[str]]] = {
    "SchedulingGates": frozenset({"preEnqueue"}),
    "PrioritySort": frozenset({"queueSort"}),
    "NodeUnschedulable": frozenset({"filter"}),
    "NodeName": frozenset({"filter"}),
    "TaintToleration": frozenset({"filter"}) | _SCORING,
    "NodeAffinity": _FILTERING | _SCORING,
    "NodePorts": _FILTERING,
    "NodeResourcesFit": _FILTERING | _SCORING | {"placementScore"},
    "VolumeRestrictions": _FILTERING,
    "NodeVolumeLimits": _FILTERING,
    "VolumeBinding": _FILTERING | _SCORING | {"reserve", "preBind"},
    "VolumeZone": _FILTERING,
    "PodTopologySpread": _FILTERING | _SCORING,
    "InterPodAffinity": _FILTERING | _SCORING,
    "DynamicResources": _FILTERING | {"preEnqueue", "postFilter", "score", "reserve", "preBind"},
    "DefaultPreemption": frozenset({"preEnqueue", "postFilter"}),
    "NodeResourcesBalancedAllocation": _SCORING,
    "ImageLocality": frozenset({"score"}),
    "DefaultBinder": frozenset({"bind"}),
    "NodeDeclaredFeatures": _FILTERING,
    "GangScheduling": frozenset({"preEnqueue", "permit"}),
    "TopologyPlacementGenerator": frozenset({"placementGenerate"}),
    "PodGroupPodsCount": frozenset({"placementScore"}),
}
