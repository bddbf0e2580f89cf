"""`SavedPods`: decodes the pods of a saved cluster, once for each template of pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from cachetools import LRUCache
from msgspec.structs import replace

from policysched.app.admission import Admission
from policysched.app.files.saved_clusters import SavedObject
from policysched.model.decode import decode_pod
from policysched.model.objects import Pod
from policysched.model.requests import amounts_in_use
from policysched.state.tables.amounts import PodResources, pod_resources_by

Object = Mapping[str, Any]
_ENCODER: Final = msgspec.json.Encoder()
_MOST_TEMPLATES: Final = 4096
"""Largest number of pod templates whose defaults and requests are cached."""


class SavedPods:
    """Decodes the pods of a saved cluster; computes defaults and requests once for pods of one template.

    Pods of one template differ only in names and nodes, on which neither defaults nor requests depend.
    """

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._resources_of = pod_resources_by(amounts_in_use(compares_sums=admission.release.resizes_compare_sums))
        self._known: LRUCache[bytes, tuple[Pod, PodResources]] = LRUCache(_MOST_TEMPLATES)

    def read(self, raw: Object) -> tuple[Pod, PodResources]:
        """Decode a pod; return the pod and its resource requests."""
        saved = raw.struct() if isinstance(raw, SavedObject) else None
        if not isinstance(saved, Pod):
            return self._measured(raw)
        # Only a pod without a UID needs admission, which applies the defaults of its namespace.
        namespace = None if saved.metadata.uid else saved.metadata.namespace
        spec = replace(saved.spec, node_name="")
        template = _ENCODER.encode((saved.metadata.labels, spec, saved.status, namespace))
        known = self._known.get(template)
        if known is None:
            known = self._known[template] = self._measured(raw)
            return known
        pod, resources = known
        metadata = saved.metadata if saved.metadata.namespace else replace(saved.metadata, namespace="default")
        return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=saved.spec.node_name)), resources

    def __len__(self) -> int:
        return len(self._known)

    def _measured(self, raw: Object) -> tuple[Pod, PodResources]:
        pod = decode_pod(self._admission.complete_pod(raw))
        return pod, self._resources_of(pod)
