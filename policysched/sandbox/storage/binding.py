"""Assigning a pod to a node: the binding subresource.

It knows pods alone. A binding is one write that sets the node, merges the binding's annotations, copies the
node's topology labels and turns the PodScheduled condition true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import StatusError, conflict, invalid, required, unlike
from policysched.sandbox.objects.resources import PODS
from policysched.sandbox.storage.writes import fetch

if TYPE_CHECKING:
    from policysched.sandbox.storage.backend import Backend

_TOPOLOGY = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def bind(backend: Backend, namespace: str, name: str, binding: Any, *, dry_run: bool) -> Json:
    """Assign the pod as the Binding says; a pod that has a node, gates or another uid is a conflict."""
    metadata, target = _read(name, binding)
    pod = fetch(backend, PODS, namespace, name).object
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, found = metadata.get(field), pod["metadata"][field]
        if wanted and wanted != found:
            raise conflict("", "pods", name, unlike("pods", (namespace, name), word, wanted, found))
    why = _refusal(pod)
    if why:
        raise conflict("", "pods/binding", name, why)
    bound = _bound(backend, pod, metadata, target)
    if not dry_run:
        backend.store.write(PODS.key, bound)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _read(name: str, binding: Any) -> tuple[Json, str]:
    if not isinstance(binding, dict) or binding.get("kind", "Binding") != "Binding":
        raise StatusError(400, "not a Binding object")
    metadata, target = binding.get("metadata") or {}, binding.get("target") or {}
    if metadata.get("name") != name:
        raise StatusError(400, "name in URL does not match name in Binding object")
    if not target.get("name"):
        raise invalid("", "Binding", name, [required("target.name")])
    return metadata, target["name"]


def _refusal(pod: Json) -> str:
    found, spec = pod["metadata"], pod["spec"]
    name = found["name"]
    if found.get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _bound(backend: Backend, pod: Json, metadata: Json, node: str) -> Json:
    found = dict(pod["metadata"])
    if metadata.get("annotations"):
        found["annotations"] = (found.get("annotations") or {}) | metadata["annotations"]
    labels = _topology(backend, node) | (metadata.get("labels") or {})
    if labels:
        found["labels"] = (found.get("labels") or {}) | labels
    status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    status["conditions"] = with_condition(status.get("conditions"), "PodScheduled", backend.timestamp())
    return pod | {"metadata": found, "spec": pod["spec"] | {"nodeName": node}, "status": status}


def _topology(backend: Backend, node: str) -> Json:
    entry = backend.store.get("nodes", "", node)
    labels = (entry.object["metadata"].get("labels") or {}) if entry else {}
    return {key: labels[key] for key in _TOPOLOGY if key in labels}


def with_condition(conditions: list[Json] | None, kind: str, now: str) -> list[Json]:
    """Return the conditions with one of them true."""
    true = {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    others = [condition for condition in conditions or () if condition["type"] != kind]
    return [*others, true]
