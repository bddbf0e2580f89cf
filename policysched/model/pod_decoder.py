"""`PodDecoder`: decodes many pods with little memory: equal parts of an owner's pods are one object.

Pods of one template differ only in names, times and nodes. A pod decoded by itself needs about eighty objects; parts
that equal those of the previous pod with the same namespace and `generateName` become the same object, so about a dozen
remain. Pods without a `generateName` are compared with the previous one of their namespace. Sharing is invisible,
because structs are immutable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar
from weakref import ref

from msgspec.structs import replace

from policysched.model.decode import check_pod, decode
from policysched.model.objects import Metadata, Pod
from policysched.model.objects.pods import PodSpec, PodStatus

Text = TypeVar("Text", str, str | None)
MOST_TEMPLATES: Final = 16_384
"""Maximum number of pod templates of which the last decoded pod is remembered; beyond it, all are forgotten.

Pods of a namespace without a `generateName` are one template.
"""


class PodDecoder:
    """Decodes pods; for sharing equal parts, it refers to earlier pods by weak references."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], ref[Pod]] = {}

    def __call__(self, raw: bytes | Mapping[str, Any]) -> Pod:
        """Decode a pod; parts that equal parts of an earlier pod of the owner become the same objects.

        Raises:
            ObjectError: the pod is malformed.
        """
        pod = decode(Pod, "Pod", raw)
        template = pod.metadata.namespace, pod.metadata.generate_name
        known = self._last.get(template)
        like = None if known is None else known()
        if like is None:
            check_pod(pod)
        else:
            pod = _sharing(pod, like)
        if known is None and len(self._last) >= MOST_TEMPLATES:
            self._last.clear()
        self._last[template] = ref(pod)
        return pod


def _sharing(pod: Pod, like: Pod) -> Pod:
    """Check a pod; return it with the parts shared that equal those of `like`, a pod that is already checked.

    Raises:
        ObjectError: a quantity is malformed.
    """
    spec, status = _spec(pod.spec, like.spec), _status(pod.status, like.status)
    made = Pod(metadata=_metadata(pod.metadata, like.metadata), spec=spec, status=status)
    if spec is pod.spec or status is pod.status or status.container_statuses is not like.status.container_statuses:
        check_pod(made)  # otherwise all quantities are those of the checked pod
    return made


# Each function returns the struct unchanged if a field differs that is usually equal for all pods of a template.


def _metadata(made: Metadata, like: Metadata) -> Metadata:
    labels, annotations = made.labels, made.annotations
    shared = replace(
        like,
        name=made.name,
        uid=made.uid,
        resource_version=made.resource_version,
        creation_timestamp=_one_of(made.creation_timestamp, like.creation_timestamp),
        labels=like.labels if labels == like.labels else labels,
        annotations=like.annotations if annotations == like.annotations else annotations,
    )
    return shared if shared == made else made


def _spec(made: PodSpec, like: PodSpec) -> PodSpec:
    """Return a pod's spec that shares equal parts with the spec `like`; only volumes and affinity may differ."""
    volumes, affinity = made.volumes, made.affinity
    shared = replace(
        like,
        node_name=_one_of(made.node_name, like.node_name),
        volumes=like.volumes if volumes == like.volumes else volumes,
        affinity=like.affinity if affinity == like.affinity else affinity,
    )
    return shared if shared == made else made


def _status(made: PodStatus, like: PodStatus) -> PodStatus:
    conditions, containers = made.conditions, made.container_statuses
    shared = replace(
        like,
        phase=made.phase,
        start_time=_one_of(made.start_time, like.start_time),
        conditions=like.conditions if conditions == like.conditions else conditions,
        container_statuses=like.container_statuses if containers == like.container_statuses else containers,
    )
    return shared if shared == made else made


def _one_of(made: Text, like: Text) -> Text:
    return like if made == like else made
