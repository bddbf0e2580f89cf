"""Keys of pod classes: pods equal in all that scheduling reads share one cached evaluation.

The key of a class holds every field of a pod, as bytes of its encoded parts, but those that `LEFT_OUT` names: in these
siblings differ for no reason that matters. Of owners only the workload counts by which a pod is spread. What policies
read beyond that they add themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from policysched.model.objects import Container, Metadata, Pod, PodResourceClaim, PodStatus, Volume, workload_owner

_NO_RULE: Final = "no plugin reads it, and policies that do add it"
_PER_POD: Final = "the filters that read it have answers of a pod's own"
LEFT_OUT: Final[Mapping[type[msgspec.Struct], Mapping[str, str]]] = {
    Metadata: {
        "name": _NO_RULE,
        "uid": "it tells pods apart, not what they need",
        "generate_name": _NO_RULE,
        "resource_version": "it tells versions apart, not what they say",
        "generation": "it tells versions apart, not what they say",
        "creation_timestamp": "policies that read a pod's age add what they make of it",
        "deletion_timestamp": "a pod that is being deleted is not scheduled",
        "annotations": _NO_RULE,
        "owner_references": "the workload by which a pod is spread is there by itself; policies add the others",
    },
    PodStatus: {
        "phase": "a pod that waits is pending",
        "conditions": "they say how earlier attempts ended",
        "nominated_node_name": "it is looked at for each pod when a node is chosen",
        "qos_class": _NO_RULE,
        "start_time": "only placed pods have one",
        "resource_claim_statuses": _PER_POD,
        "extended_resource_claim_status": "only placed pods have one",
    },
    PodResourceClaim: {
        "name": "it names no more than a place in the pod",
        "resource_claim_name": _PER_POD,
        "resource_claim_template_name": _PER_POD,
    },
    Container: {"name": "it leads to the container's status alone, and is there where a pod has any"},
    Volume: {
        "name": "it names no more than a place in the pod",
        "persistent_volume_claim": _PER_POD,
        "ephemeral": _PER_POD,
        "csi": "only placed pods' volumes are counted by it",
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
"""The fields that the key does without, and why it may; a field that is not named is in it."""
S = TypeVar("S", bound=msgspec.Struct)
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_EMPTY: Final = {struct: {name: getattr(struct(), name) for name in names} for struct, names in LEFT_OUT.items()}

_NOTHING_TOLD: Final[Mapping[type[msgspec.Struct], Any]] = {
    struct: struct() for struct, names in LEFT_OUT.items() if set(struct.__struct_fields__) == set(names)
}
"""What stands for objects of which the key has no more than that they are there."""


def _getter(struct: type[msgspec.Struct]) -> Callable[[msgspec.Struct], tuple[Any, ...]]:
    """Return what gives the fields of an object that are in the key."""
    names = [name for name in struct.__struct_fields__ if name not in LEFT_OUT[struct]]
    return attrgetter(*names)


_METADATA, _STATUS = _getter(Metadata), _getter(PodStatus)
_NO_STATUS: Final = _STATUS(PodStatus())
_NO_VOLUME: Final = Volume()


def class_key(pod: Pod, extra: Hashable = None) -> Hashable:
    """Return the key of the pod's class; `extra` adds what policies read."""
    spec, status = pod.spec, _STATUS(pod.status)
    told: dict[str, Any] = {}
    if spec.volumes:
        told["volumes"] = [one for one in _told(spec.volumes) if one != _NO_VOLUME]
    if spec.resource_claims:
        told["resource_claims"] = _told(spec.resource_claims)
    if status == _NO_STATUS:
        status = ()
        told["containers"] = _told(spec.containers)
        if spec.init_containers:
            told["init_containers"] = _told(spec.init_containers)
    owner = None if spec.topology_spread_constraints else workload_owner(pod)
    key = _ENCODER.encode((_METADATA(pod.metadata), replace(spec, **told), status, owner))
    return (key, extra) if extra is not None else key


def _told(structs: Sequence[S]) -> list[S]:
    """Return objects of one kind without what the key leaves out."""
    if not structs:
        return []
    kind = type(structs[0])
    if kind in _NOTHING_TOLD:
        return [_NOTHING_TOLD[kind]] * len(structs)
    empty = _EMPTY[kind]
    return [replace(one, **empty) for one in structs]
