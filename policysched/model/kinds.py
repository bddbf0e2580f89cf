"""The table of the kinds of Kubernetes objects that scheduling reads: how to list, decode and default them.

Each kind is declared once: the API path, decoding and defaults, the resource in queueing hints, and the plugins that
need it. Code that watches a cluster, reads files, serves objects or stores them in columns uses this table. This module
knows no network and no columns. `policysched.state.cluster` defines how the cluster uses an object: a kind that it does
not mention is stored by name, and its changes reach the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from policysched.model.decode import (
    ObjectError,
    decode,
    decode_node,
    decode_pod,
    decode_storage,
    plain,
)
from policysched.model.defaults import (
    Object,
    PriorityClasses,
    fill_claim,
    fill_controller,
    fill_namespace,
    fill_node,
    fill_pod,
    fill_storage_class,
    fill_volume,
    fill_volume_mode,
)
from policysched.model.device_decoding import decode_devices
from policysched.model.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    DeviceTaintRule,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    Service,
    StatefulSet,
    StorageClass,
    Stored,
    VolumeAttachment,
)
from policysched.model.pod_decoder import PodDecoder
from policysched.model.policy import API_VERSIONS, KIND, PLURAL, Policy, decode_watched_policy
from policysched.model.release import DEFAULT, Release

T = TypeVar("T")
S = TypeVar("S", bound=Stored)
FINISHED: Final = frozenset(("Succeeded", "Failed"))
"""The phases of pods that have finished and hold no resources any more."""


class Resource(Enum):
    """What a queueing hint is about: a kind of objects, metrics or time (kube-scheduler's EventResource).

    Source: k8s.io/kube-scheduler/framework/types.go (EventResource).
    """

    NODE = "Node"
    ASSIGNED_POD = "AssignedPod"
    PENDING_POD = "UnschedulablePod"
    NAMESPACE = "Namespace"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    POLICY = "SchedulingPolicy"
    VOLUME = "PersistentVolume"
    CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    OTHER = "Other"
    """Objects of a kind whose changes never make a pod schedulable."""
    METRICS = "Metrics"
    """Values of metrics, which are no objects of the API."""
    TIME = "Time"
    """Elapsed time, which can change the result of a rule; it is no object of the API."""


@dataclass(frozen=True, slots=True)
class CustomResource:
    """A custom resource that a queueing hint names, as `plural.version.group`: `foos.v1.example.com`.

    Raises:
        ValueError: it has another form.

    Source: pkg/scheduler/eventhandlers.go (addAllEventHandlers), v1.36.
    """

    value: str

    def __post_init__(self) -> None:
        """Check that the custom resource is written as `plural.version.group`."""
        plural, version, group = (*self.value.split(".", 2), "", "")[:3]
        if not (plural and version and group):
            raise ValueError(f"{self.value!r} is no custom resource: plural.version.group is one")


def _everything(_: object) -> bool:
    return True


def _nothing(_: Object) -> None:
    """Leave an object unchanged: the default of `ApiKind.fill`, for kinds without defaults."""


@dataclass(frozen=True, slots=True)
class ApiKind(Generic[T]):
    """A kind of Kubernetes objects that scheduling reads: API path, decoder, defaults, and plugins that read it."""

    api_version: str
    kind: str
    """The kind, as the field `kind` of objects states it; the struct has the same name."""
    plural: str
    decode: Callable[[Any], T]
    """Function that decodes JSON or a dictionary into the struct; raises ObjectError for a malformed object."""
    resource: Resource | CustomResource = Resource.OTHER
    namespaced: bool = True
    fill: Callable[[Object], None] = _nothing
    """Function that sets the API server's defaults in an object from a file."""
    read_by: frozenset[str] | None = None
    """The plugins that read the kind, which is watched only if one of them is enabled; None to watch it always."""
    read_in: Callable[[Release], bool] = _everything
    """Function that returns whether the scheduler of a release reads the kind."""
    make_decoder: Callable[[], Callable[[Any], T]] | None = None
    """Function that creates a decoder for many objects, which shares their equal parts; None for no such decoder."""
    keep: Callable[[T], bool] = _everything
    """Function that returns whether scheduling needs an object; if not any more, the object is treated as deleted."""
    malformed_is_gone: bool = True
    """Whether a malformed version of an object is treated as its deletion; otherwise, the last valid version stays."""
    known_by_uid: bool = False
    """Whether objects are stored by UID, so that two objects with the same UID are an error."""
    tolerated: frozenset[int] = frozenset()
    """HTTP status codes of the first list request that mean an empty list, because servers need not serve the kind."""
    remedy: str = ""
    """Advice in the log if the API server does not serve the kind in this version."""
    older: tuple[str, ...] = ()
    """Older API versions with the same fields, newest first, for servers that do not serve `api_version`."""

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def stated_kind(self) -> str:
        """The kind, as the field `kind` of objects states it; empty for a custom resource, whose kind is unknown."""
        return "" if isinstance(self.resource, CustomResource) else self.kind

    @property
    def path(self) -> str:
        """The API path that lists the objects of all namespaces."""
        return f"/{'apis' if self.group else 'api'}/{self.api_version}/{self.plural}"

    def versions(self) -> tuple[ApiKind[T], ...]:
        """The kind in each API version that can be read, the newest version first."""
        return self, *(replace(self, api_version=version) for version in self.older)

    def is_read(self, plugins: frozenset[str], release: Release) -> bool:
        """Return whether the scheduler of a release, with these plugins enabled, reads objects of the kind."""
        return self.read_in(release) and (self.read_by is None or not self.read_by.isdisjoint(plugins))

    def key(self, obj: Any) -> str:
        """Return the key of an object: `namespace/name`, or the name for a cluster-scoped kind."""
        metadata = obj.metadata
        return f"{metadata.namespace}/{metadata.name}" if self.namespaced else str(metadata.name)


_STORAGE: Final = "storage.k8s.io/v1"
_VOLUMES: Final = frozenset(("NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone"))
_SPREADING: Final = frozenset(("PodTopologySpread",))
_NOT_SERVED: Final = frozenset((404,))
NODES: Final[ApiKind[Node]] = ApiKind("v1", "Node", "nodes", decode_node, Resource.NODE, namespaced=False)
NAMESPACES: Final[ApiKind[Namespace]] = ApiKind(
    "v1",
    "Namespace",
    "namespaces",
    partial(decode, Namespace, "Namespace"),
    Resource.NAMESPACE,
    namespaced=False,
    fill=fill_namespace,
)


def _read_devices(shape: type[T], raw: bytes | Mapping[str, Any]) -> T:
    made: T = decode_devices(shape, raw)  # type: ignore[type-var]
    return made


def _of_devices(plural: str, shape: type[T], resource: Resource, **more: Any) -> ApiKind[T]:
    """Return the `ApiKind` for a kind of `resource.k8s.io` that dynamic resource allocation reads."""
    read = partial(_read_devices, shape)
    read_by = frozenset(("DynamicResources", "NodeResourcesFit"))
    return ApiKind("resource.k8s.io/v1", shape.__name__, plural, read, resource, read_by=read_by, **more)


_NO_DEVICES: Final = frozenset((403, 404))
DEVICE_CLASSES: Final = _of_devices(
    "deviceclasses",
    DeviceClass,
    Resource.DEVICE_CLASS,
    namespaced=False,
    tolerated=_NO_DEVICES,
)
RESOURCE_SLICES: Final = _of_devices(
    "resourceslices",
    ResourceSlice,
    Resource.RESOURCE_SLICE,
    namespaced=False,
    tolerated=_NO_DEVICES,
)
"""The kind ResourceSlice; if listing it is forbidden, the cluster has no devices."""
DEVICE_TAINT_RULES: Final[ApiKind[DeviceTaintRule]] = ApiKind(
    "resource.k8s.io/v1",
    "DeviceTaintRule",
    "devicetaintrules",
    partial(decode, DeviceTaintRule, "DeviceTaintRule"),
    namespaced=False,
    read_by=frozenset(("DynamicResources",)),
    read_in=attrgetter("device_taint_rules_apply"),
    malformed_is_gone=False,
    tolerated=_NOT_SERVED,
)
"""The kind DeviceTaintRule; a forbidden list is an error, because devices may be tainted."""
RESOURCE_CLAIMS: Final = _of_devices(
    "resourceclaims",
    ResourceClaim,
    Resource.RESOURCE_CLAIM,
    malformed_is_gone=False,
    known_by_uid=True,
    fill=fill_claim,
    tolerated=_NOT_SERVED,
)
"""The kind ResourceClaim; a forbidden list is an error, because claims hold devices.

A claim that becomes malformed keeps its devices.
"""
POLICIES: Final[ApiKind[Policy]] = ApiKind(
    API_VERSIONS[0],
    KIND,
    PLURAL,
    decode_watched_policy,
    Resource.POLICY,
    namespaced=False,
    malformed_is_gone=False,
    tolerated=_NOT_SERVED,
    remedy="to install the CRD: policysched crd | kubectl apply -f -",
    older=API_VERSIONS[1:],
)
"""The kind SchedulingPolicy; none exist if it is not installed; a forbidden list is an error."""
POD_GROUPS: Final[ApiKind[PodGroup]] = ApiKind(
    "scheduling.k8s.io/v1beta1",
    "PodGroup",
    "podgroups",
    partial(decode, PodGroup, "PodGroup"),
    Resource.POD_GROUP,
    read_in=attrgetter("generic_workload"),
    malformed_is_gone=False,
    tolerated=_NOT_SERVED,
    remedy="pods of pod groups wait; to serve the kind, set the API server's "
    "--feature-gates=GenericWorkload=true and --runtime-config=scheduling.k8s.io/v1beta1=true",
)
PODS: Final[ApiKind[Pod]] = ApiKind(
    "v1",
    "Pod",
    "pods",
    decode_pod,
    Resource.ASSIGNED_POD,
    make_decoder=PodDecoder,
    keep=lambda pod: pod.status.phase not in FINISHED,
    known_by_uid=True,
)
"""The kind Pod; pods that have finished are not stored, because they hold no resources."""


RESOURCE_CLAIM_TEMPLATES: Final[ApiKind[ResourceClaimTemplate]] = ApiKind(
    "resource.k8s.io/v1",
    "ResourceClaimTemplate",
    "resourceclaimtemplates",
    partial(_read_devices, ResourceClaimTemplate),
    read_by=frozenset(),  # a running scheduler reads only the claims created from templates
    tolerated=frozenset((403, 404)),
)


def _workload(api_version: str, plural: str, shape: type[T], **more: Any) -> ApiKind[T]:
    """Return the `ApiKind` for Services or workload controllers, which default spread constraints read."""
    kind = shape.__name__
    return ApiKind(api_version, kind, plural, partial(decode, shape, kind), read_by=_SPREADING, **more)


def _stored(api_version: str, plural: str, shape: type[S], resource: Resource, **more: Any) -> ApiKind[S]:
    """Return the `ApiKind` for a kind of storage objects, which the volume plugins read."""
    read = partial(decode_storage, shape)
    return ApiKind(api_version, shape.__name__, plural, read, resource, read_by=_VOLUMES, **more)


KINDS: Final[dict[str, ApiKind[Any]]] = {
    one.kind: one
    for one in (
        NODES,
        NAMESPACES,
        POLICIES,
        DEVICE_CLASSES,
        DEVICE_TAINT_RULES,
        RESOURCE_SLICES,
        RESOURCE_CLAIMS,
        RESOURCE_CLAIM_TEMPLATES,
        _workload("v1", "services", Service),
        _workload("v1", "replicationcontrollers", ReplicationController, fill=fill_controller),
        _workload("apps/v1", "replicasets", ReplicaSet),
        _workload("apps/v1", "statefulsets", StatefulSet),
        _stored("v1", "persistentvolumes", PersistentVolume, Resource.VOLUME, namespaced=False, fill=fill_volume),
        _stored("v1", "persistentvolumeclaims", PersistentVolumeClaim, Resource.CLAIM, fill=fill_volume_mode),
        _stored(
            _STORAGE, "storageclasses", StorageClass, Resource.STORAGE_CLASS, namespaced=False, fill=fill_storage_class
        ),
        _stored(_STORAGE, "csinodes", CSINode, Resource.CSI_NODE, namespaced=False),
        _stored(_STORAGE, "csidrivers", CSIDriver, Resource.CSI_DRIVER, namespaced=False),
        _stored(_STORAGE, "csistoragecapacities", CSIStorageCapacity, Resource.STORAGE_CAPACITY),
        _stored(_STORAGE, "volumeattachments", VolumeAttachment, Resource.ATTACHMENT, namespaced=False),
        ApiKind(
            "policy/v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            partial(decode, PodDisruptionBudget, "PodDisruptionBudget"),
            read_by=frozenset(("DefaultPreemption",)),
            malformed_is_gone=False,
            tolerated=_NOT_SERVED,
        ),
        ApiKind(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            "priorityclasses",
            partial(decode, PriorityClass, "PriorityClass"),
            namespaced=False,
            read_by=frozenset(),  # a running scheduler reads the priority in the pod
        ),
        POD_GROUPS,
        PODS,
    )
}
"""All kinds that scheduling reads, by name; Pod is the last, because pods refer to objects of other kinds."""


def kind_of(raw: Mapping[str, Any]) -> ApiKind[Any] | None:
    """Return the `ApiKind` of an object from a file; None for a kind or API group that scheduling does not read."""
    found = KINDS.get(str(raw.get("kind")))
    version = raw.get("apiVersion")
    if found is None or (isinstance(version, str) and version and version.rpartition("/")[0] != found.group):
        return None
    return found


def fill(raw: Mapping[str, Any], classes: PriorityClasses, release: Release = DEFAULT) -> Object:
    """Return an object completed with the API server's defaults, if scheduling reads its kind.

    Args:
        raw: the object; it is not changed.
        classes: the priority classes of the cluster.
        release: the Kubernetes release of the API server.

    Raises:
        ObjectError: the object is malformed, or the priority class of a pod does not exist.
    """
    found = kind_of(raw)
    if found is PODS:
        return fill_pod(raw, classes, release)
    if found is NODES:
        return fill_node(raw)
    made: Object = plain(str(raw.get("kind") or "object"), raw)
    if found is not None:
        metadata = made.setdefault("metadata", {})
        if not isinstance(metadata, dict):
            raise ObjectError(found.kind, "", "expected an object", "metadata")
        if found.namespaced:
            metadata["namespace"] = metadata.get("namespace") or "default"
        found.fill(made)
    return made
