"""Cache keys of pods: pods equal in all fields that scheduling reads have one key and share results (a pod class).

The key of a class contains every field of a pod, as encoded bytes, except the fields in `LEFT_OUT`, in which equal
pods may differ. The key contains the workload by which a pod is spread, and no other owner. Policies add the fields
that they read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from policysched.model.objects import (
    Container,
    Metadata,
    Pod,
    PodResourceClaim,
    PodSpec,
    PodStatus,
    Volume,
    workload_owner,
)

_NO_RULE: Final = "no plugin reads it; policies that read it add it"
_PER_POD: Final = "the filters that read it evaluate each pod separately"
LEFT_OUT: Final[Mapping[type[msgspec.Struct], Mapping[str, str]]] = {
    Metadata: {
        "name": _NO_RULE,
        "uid": "it identifies the pod and is not a requirement",
        "generate_name": _NO_RULE,
        "resource_version": "it identifies the version and is not a requirement",
        "generation": "it identifies the version and is not a requirement",
        "creation_timestamp": "policies that read the pod's age add the value that they use",
        "deletion_timestamp": "a pod that is being deleted is not scheduled",
        "annotations": _NO_RULE,
        "owner_references": "the key contains the workload by which a pod is spread; policies add other owners",
    },
    PodStatus: {
        "phase": "every queued pod is Pending",
        "conditions": "they are results of earlier attempts",
        "nominated_node_name": "it is read for each pod when a node is chosen",
        "qos_class": _NO_RULE,
        "start_time": "only placed pods have one",
        "resource_claim_statuses": _PER_POD,
        "extended_resource_claim_status": "only placed pods have one",
    },
    PodSpec: {"scheduling_group": "no filter or score reads it"},
    PodResourceClaim: {
        "name": "it is only a reference inside the pod",
        "resource_claim_name": _PER_POD,
        "resource_claim_template_name": _PER_POD,
    },
    Container: {"name": "it matters only for container statuses, and the key contains it if the pod has any"},
    Volume: {
        "name": "it is only a reference inside the pod",
        "persistent_volume_claim": _PER_POD,
        "ephemeral": _PER_POD,
        "csi": "only volumes of placed pods are counted by it",
        "gce_persistent_disk": _PER_POD,
        "aws_elastic_block_store": _PER_POD,
        "azure_disk": _PER_POD,
        "azure_file": _PER_POD,
        "cinder": _PER_POD,
        "vsphere_volume": _PER_POD,
        "portworx_volume": _PER_POD,
        "iscsi": _PER_POD,
        "rbd": _PER_POD,
    },
}
"""For each struct in a pod, the fields that are not part of the pod's cache key, with the reason."""
S = TypeVar("S", bound=msgspec.Struct)
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_EMPTY: Final = {struct: {name: getattr(struct(), name) for name in names} for struct, names in LEFT_OUT.items()}

_WITHOUT_KEY_FIELDS: Final[Mapping[type[msgspec.Struct], Any]] = {
    struct: struct() for struct, names in LEFT_OUT.items() if set(struct.__struct_fields__) == set(names)
}
"""For each struct in a pod of which no field is part of the cache key, an object with default values."""


def _key_fields_of(struct: type[msgspec.Struct]) -> Callable[[msgspec.Struct], tuple[Any, ...]]:
    """Return a function that returns the values of those fields of a struct that are part of a pod's cache key."""
    names = [name for name in struct.__struct_fields__ if name not in LEFT_OUT[struct]]
    return attrgetter(*names)


_METADATA, _STATUS = _key_fields_of(Metadata), _key_fields_of(PodStatus)
_NO_STATUS: Final = _STATUS(PodStatus())
_NO_VOLUME: Final = Volume()


def class_key(pod: Pod, extra: Hashable = None) -> Hashable:
    """Return a key that is equal for pods which scheduling cannot distinguish; `extra`: values that policies read."""
    spec, status = pod.spec, _STATUS(pod.status)
    told: dict[str, Any] = {}
    if spec.volumes:
        told["volumes"] = [one for one in _with_key_fields(spec.volumes) if one != _NO_VOLUME]
    if spec.scheduling_group is not None:
        told["scheduling_group"] = None
    if spec.resource_claims:
        told["resource_claims"] = _with_key_fields(spec.resource_claims)
    if status == _NO_STATUS:
        status = ()
        told["containers"] = _with_key_fields(spec.containers)
        if spec.init_containers:
            told["init_containers"] = _with_key_fields(spec.init_containers)
    owner = None if spec.topology_spread_constraints else workload_owner(pod)
    key = _ENCODER.encode((_METADATA(pod.metadata), replace(spec, **told), status, owner))
    return (key, extra) if extra is not None else key


def _with_key_fields(structs: Sequence[S]) -> list[S]:
    """Return copies of objects in which the fields that are not part of a pod's cache key have default values."""
    if not structs:
        return []
    kind = type(structs[0])
    if kind in _WITHOUT_KEY_FIELDS:
        return [_WITHOUT_KEY_FIELDS[kind]] * len(structs)
    empty = _EMPTY[kind]
    return [replace(one, **empty) for one in structs]
