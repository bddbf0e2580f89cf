"""Deletion of objects, and the subresources binding, scale and eviction.

A deletion marks or removes an object; kubelets and garbage collector learn of it from the store. A pod without a node
has no kubelet to stop it, so it is removed at once, as in the API server. A binding is one write: it sets the node,
merges the binding's annotations, copies the node's topology labels and sets the PodScheduled condition. A Scale is a
view of a workload's replica count. An eviction is a deletion that checks the pod's disruption budgets first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from policysched.apimachinery import Json
from policysched.apimachinery.errors import (
    StatusError,
    conflict,
    invalid,
    precondition_failed,
    required,
    success,
    wrong,
)
from policysched.apimachinery.resources import PODS, ApiResource
from policysched.apimachinery.selectors import object_selected, selector_text
from policysched.sandbox.storage.store import Backend, Stored
from policysched.sandbox.storage.writes import fetch, store_update

BUDGETS = "poddisruptionbudgets.policy"
_TOPOLOGY = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_PROPAGATION = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a deletion; for a field that is None, the default of the object's kind applies."""

    grace_seconds: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


def delete(backend: Backend, resource: ApiResource, entry: Stored, options: DeleteOptions) -> tuple[Stored, bool]:
    """Delete an object; return its last version and whether it was removed."""
    _check(resource, entry.object, options)
    grace = _grace(resource, entry.object, options)
    finalizers = _finalizers(backend, resource, entry, options)
    if options.dry_run:
        return entry, not finalizers
    if grace == 0 and not finalizers:
        last, metadata = entry.object, entry.object["metadata"]
        if "deletionTimestamp" in metadata:  # a terminating object is removed without a grace period
            last = last | {"metadata": metadata | {"deletionGracePeriodSeconds": 0}}
        return backend.store.remove(resource.key, *entry.key, last), True
    return _mark(backend, resource, entry, grace, finalizers), False


def _check(resource: ApiResource, obj: Json, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    pairs = (
        ("UID", options.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, metadata["resourceVersion"], "modified"),
    )
    for word, wanted, found, done in pairs:
        if wanted and wanted != found:
            why = f"the {word} in the precondition ({wanted}) does not match the {word} in record ({found}). "
            raise conflict(resource.group, resource.kind, metadata["name"], f"{why}The object might have been {done}")


def _grace(resource: ApiResource, obj: Json, options: DeleteOptions) -> int:
    if resource.key != "pods":
        return 0
    spec, phase = obj["spec"], (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
        return 0
    grace = options.grace_seconds
    return int(spec.get("terminationGracePeriodSeconds", 30)) if grace is None else max(grace, 0)


def _finalizers(backend: Backend, resource: ApiResource, entry: Stored, options: DeleteOptions) -> list[str]:
    metadata = entry.object["metadata"]
    found = list(metadata.get("finalizers") or ())
    added = _PROPAGATION.get(options.propagation)
    if added and added not in found and _owns(backend, resource, metadata["uid"]):
        found.append(added)
    if resource.key == "namespaces":
        found.append("kubernetes")
    return found


def _owns(backend: Backend, resource: ApiResource, uid: str) -> bool:
    if resource.key in ("pods", "nodes", "events"):
        return False
    owners = (
        reference["uid"]
        for key in backend.store.resources()
        for entry in backend.store.values(key)
        for reference in entry.object["metadata"].get("ownerReferences") or ()
    )
    return uid in owners


def _mark(backend: Backend, resource: ApiResource, entry: Stored, grace: int, finalizers: list[str]) -> Stored:
    metadata = entry.object["metadata"]
    marked = metadata.get("deletionTimestamp")
    if marked and metadata.get("deletionGracePeriodSeconds", 0) <= grace:
        return entry
    kept = [name for name in finalizers if name != "kubernetes"]
    metadata = metadata | {"deletionTimestamp": backend.timestamp(grace), "deletionGracePeriodSeconds": grace}
    if kept:
        metadata["finalizers"] = kept
    if "generation" in metadata and not marked:
        metadata["generation"] += 1
    obj = entry.object | {"metadata": metadata}
    if resource.key == "namespaces":
        obj["status"] = {"phase": "Terminating"}
    return store_update(backend, resource, obj)


def bind(backend: Backend, namespace: str, name: str, binding: Any, *, dry_run: bool) -> Json:
    """Bind a pod to the node in a Binding; a pod with a node, gates or another UID is a conflict."""
    if not isinstance(binding, dict) or binding.get("kind", "Binding") != "Binding":
        raise StatusError(400, "not a Binding object")
    metadata, node = binding.get("metadata") or {}, (binding.get("target") or {}).get("name")
    if metadata.get("name") != name:
        raise StatusError(400, "name in URL does not match name in Binding object")
    if not node:
        raise invalid("", "Binding", name, [required("target.name")])
    pod = fetch(backend, PODS, namespace, name).object
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, found = metadata.get(field), pod["metadata"][field]
        if wanted and wanted != found:
            raise conflict("", "pods", name, precondition_failed("pods", (namespace, name), word, wanted, found))
    why = _refusal(pod)
    if why:
        raise conflict("", "pods/binding", name, why)
    if not dry_run:
        backend.store.write(PODS.key, _bound(backend, pod, metadata, node))
    return success(code=201)


def _refusal(pod: Json) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
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
    entry = backend.store.get("nodes", "", node)
    of_node = (entry.object["metadata"].get("labels") or {}) if entry else {}
    labels = {key: of_node[key] for key in _TOPOLOGY if key in of_node} | (metadata.get("labels") or {})
    if labels:
        found["labels"] = (found.get("labels") or {}) | labels
    status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    status["conditions"] = with_condition(status.get("conditions"), "PodScheduled", backend.timestamp())
    return pod | {"metadata": found, "spec": pod["spec"] | {"nodeName": node}, "status": status}


def with_condition(conditions: list[Json] | None, kind: str, now: str) -> list[Json]:
    """Return a list of conditions in which the condition of type `kind` is True."""
    true = {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    others = [condition for condition in conditions or () if condition["type"] != kind]
    return [*others, true]


def scale_of(workload: Json) -> Json:
    """Return the Scale object of a workload."""
    metadata, spec, status = workload["metadata"], workload["spec"], workload.get("status") or {}
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in names if name in metadata},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {"replicas": status.get("replicas", 0), "selector": selector_text(spec.get("selector"))},
    }


def scaled(resource: ApiResource, workload: Json, scale: Json) -> Json:
    """Return a workload with the replica count of a Scale."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    name = workload["metadata"]["name"]
    if not isinstance(replicas, int) or replicas < 0:
        why = "must be greater than or equal to 0"
        raise invalid("autoscaling", "Scale", name, [wrong("spec.replicas", replicas, why)])
    metadata = dict(workload["metadata"])
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        metadata["resourceVersion"] = version
    changed = {"metadata": metadata, "spec": workload["spec"] | {"replicas": replicas}}
    return workload | {"apiVersion": resource.api_version} | changed


def evict(backend: Backend, namespace: str, name: str, options: DeleteOptions) -> Stored:
    """Delete a pod; raise a 429 error if its disruption budget allows no disruption."""
    entry = fetch(backend, PODS, namespace, name)
    budgets = [each for each in backend.store.entries(BUDGETS, namespace) if _guards(each, entry)]
    if len(budgets) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise StatusError(500, text)
    for budget in budgets:
        _take(backend, budget, dry_run=options.dry_run)
    return delete(backend, PODS, entry, options)[0]


def _guards(budget: Stored, pod: Stored) -> bool:
    status = pod.object.get("status") or {}
    if status.get("phase") in ("Pending", "Succeeded", "Failed") or "deletionTimestamp" in pod.object["metadata"]:
        return False
    return object_selected(budget.object["spec"].get("selector"), pod.object["metadata"].get("labels") or {})


def _take(backend: Backend, budget: Stored, *, dry_run: bool) -> None:
    obj = budget.object
    status = obj.get("status") or {}
    allowed, name = status.get("disruptionsAllowed", 0), obj["metadata"]["name"]
    if allowed <= 0:
        text = (
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
            f"{status.get('currentHealthy', 0)} currently"
        )
        causes = [{"reason": "DisruptionBudget", "message": text}]
        why = "Cannot evict pod as it would violate the pod's disruption budget."
        raise StatusError(429, why, details={"causes": causes})
    if not dry_run:
        backend.store.write(BUDGETS, obj | {"status": status | {"disruptionsAllowed": allowed - 1}})
