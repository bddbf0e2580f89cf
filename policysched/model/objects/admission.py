"""Runtime classes and limit ranges, which only admission plugins read.

Source: k8s.io/api/node/v1/types.go, k8s.io/api/core/v1/types.go, v0.36.
"""

from __future__ import annotations

from policysched.model.objects.meta import Metadata, ResourceList, Struct
from policysched.model.objects.pods import Toleration


class Overhead(Struct, frozen=True):
    """The resources that a container runtime uses besides the containers' resources."""

    pod_fixed: ResourceList = {}


class RuntimeScheduling(Struct, frozen=True):
    """The selector and tolerations for the nodes that support a container runtime."""

    node_selector: dict[str, str] = {}
    tolerations: list[Toleration] = []


class RuntimeClass(Struct, frozen=True):
    """A container runtime that pods can choose."""

    metadata: Metadata = Metadata()
    overhead: Overhead = Overhead()
    scheduling: RuntimeScheduling = RuntimeScheduling()


class LimitRangeItem(Struct, frozen=True):
    """The limits of one type of object (Pod, Container, PersistentVolumeClaim)."""

    type: str = ""
    default: ResourceList = {}
    default_request: ResourceList = {}
    max: ResourceList = {}
    min: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(Struct, frozen=True):
    """The spec of a limit range."""

    limits: list[LimitRangeItem] = []


class LimitRange(Struct, frozen=True):
    """The limits and defaults of a namespace."""

    metadata: Metadata = Metadata()
    spec: LimitRangeSpec = LimitRangeSpec()
