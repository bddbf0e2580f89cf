"""The pod that a file asks about: a Pod itself, or the template of a workload that makes pods.

A pod that is on a node already, as kubectl prints it, is taken for a new one of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from policysched.app.files.objects import Document, Object
from policysched.errors import UsageError

_TEMPLATES: Final = {
    "Deployment": "spec.template",
    "ReplicaSet": "spec.template",
    "StatefulSet": "spec.template",
    "DaemonSet": "spec.template",
    "ReplicationController": "spec.template",
    "Job": "spec.template",
    "CronJob": "spec.jobTemplate.spec.template",
    "PodTemplate": "template",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pod to decide about."""

    object: Object
    document: Document
    template: str = ""
    """Where the pod's template is in its document; empty for a Pod."""

    @property
    def note(self) -> str:
        """Say that the pod is made of a template, where it is."""
        if not self.template:
            return ""
        kind = self.document.object["kind"]
        return f"the pod is made of the template of {kind} {self.object['metadata']['name']}"


def pod_of(documents: Sequence[Document], file: str) -> Wanted:
    """Find the one pod, or the one workload, that a file is about; other objects in it are left alone.

    Raises:
        UsageError: there is none, there are several, or it has no name.
    """
    found = [one for one in documents if one.object["kind"] == "Pod" or one.object["kind"] in _TEMPLATES]
    if not found:
        kinds = ", ".join(sorted({one.object["kind"] for one in documents}))
        raise UsageError(f"{file}: holds no pod and no workload with a pod template, only {kinds}")
    if len(found) > 1:
        places = ", ".join(one.where for one in found[:5])
        raise UsageError(f"{file}: holds {len(found)} pods or workloads ({places}): give the one to decide about")
    return _made(found[0])


def _made(document: Document) -> Wanted:
    kind = document.object["kind"]
    metadata = _mapping(document.object.get("metadata"))
    name = metadata.get("name") or str(metadata.get("generateName") or "").rstrip("-")
    if not name:
        raise UsageError(f"{document.where}: the {kind.lower()} has no name")
    if kind == "Pod":
        return Wanted({**document.object, "metadata": _identity(metadata, metadata, name)}, document)
    path = _TEMPLATES[kind]
    template = document.object
    for step in path.split("."):
        template = _mapping(template.get(step))
    if not template:
        raise UsageError(f"{document.where}: the {kind.lower()} has no {path}")
    identity = _identity(_mapping(template.get("metadata")), metadata, name)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": identity, "spec": template.get("spec")}
    return Wanted(pod, document, path)


def _identity(own: Object, owner: Object, name: str) -> Object:
    return {**own, "name": name, "namespace": owner.get("namespace") or "default"}


def _mapping(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


_OF_ITS_LIFE: Final = frozenset(("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"))
"""What an object's metadata say of its life, not of what it is."""


def as_new(pod: Object) -> tuple[Object, tuple[str, ...]]:
    """Give a pod without its node and its life where it has both a node and a status, and a note that says so.

    A pod without a status that names a node is one that somebody wants there: it stays as it is.
    """
    metadata, spec, status = pod.get("metadata"), pod.get("spec"), pod.get("status")
    if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping) or not isinstance(status, Mapping):
        return pod, ()
    node = spec.get("nodeName")
    if not node or not status.get("phase"):
        return pod, ()
    identity = {key: value for key, value in metadata.items() if key not in _OF_ITS_LIFE}
    wanted = {key: value for key, value in spec.items() if key != "nodeName"}
    new = {key: value for key, value in pod.items() if key != "status"} | {"metadata": identity, "spec": wanted}
    return new, (f"the pod is on node {node} already; this is about a new pod like it",)
