"""Services and the controllers of pods, as far as they say which pods belong together.

Only their selectors; whose selectors count for a pod that spreads by default is worked out in
`policysched.plugins.pod_topology_spread.constraints`.

Source: k8s.io/api/core/v1/types.go, k8s.io/api/apps/v1/types.go, v0.36.
"""

from __future__ import annotations

from typing import Final

from policysched.model.objects.meta import LabelSelector, Metadata, Struct
from policysched.model.objects.pods import Pod

REPLICATION_CONTROLLER: Final = "ReplicationController"
REPLICA_SET: Final = "ReplicaSet"
STATEFUL_SET: Final = "StatefulSet"
_KINDS: Final = {
    ("v1", REPLICATION_CONTROLLER): REPLICATION_CONTROLLER,
    ("apps/v1", REPLICA_SET): REPLICA_SET,
    ("apps/v1", STATEFUL_SET): STATEFUL_SET,
}


class LabelsSpec(Struct, frozen=True):
    """A spec that selects pods by plain labels."""

    selector: dict[str, str] | None = None


class SelectorSpec(Struct, frozen=True):
    """A spec that selects pods by a label selector."""

    selector: LabelSelector | None = None


class Service(Struct, frozen=True):
    """A service; without a selector it has no pods of its own."""

    metadata: Metadata = Metadata()
    spec: LabelsSpec = LabelsSpec()


class ReplicationController(Struct, frozen=True):
    """A replication controller."""

    metadata: Metadata = Metadata()
    spec: LabelsSpec = LabelsSpec()


class ReplicaSet(Struct, frozen=True):
    """A replica set."""

    metadata: Metadata = Metadata()
    spec: SelectorSpec = SelectorSpec()


class StatefulSet(Struct, frozen=True):
    """A stateful set."""

    metadata: Metadata = Metadata()
    spec: SelectorSpec = SelectorSpec()


Workload = Service | ReplicationController | ReplicaSet | StatefulSet


def workload_owner(pod: Pod) -> tuple[str, str] | None:
    """Give kind and name of the controller that says which pods the pod belongs to, None where none of them does.

    Source: pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
    """
    owner = next((one for one in pod.metadata.owner_references if one.controller), None)
    if owner is None:
        return None
    # an empty group may be written with its slash
    version = owner.api_version[1:] if owner.api_version.startswith("/") else owner.api_version
    kind = _KINDS.get((version, owner.kind))
    return None if kind is None else (kind, owner.name)
