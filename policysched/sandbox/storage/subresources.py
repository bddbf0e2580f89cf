"""The subresources binding, scale and eviction.

A binding is one write that sets the node, merges the binding's annotations, copies the node's topology labels and turns
the PodScheduled condition true. A Scale is a view of a workload's replica count; the workload is written like any other
update. An eviction is a deletion that asks the pod's disruption budgets first.
"""

from __future__ import annotations

from typing import Any

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import StatusError, conflict, invalid, precondition_failed, required, wrong
from policysched.sandbox.objects.resources import PODS, ApiResource
from policysched.sandbox.objects.selectors import object_selected, selector_text
from policysched.sandbox.storage.deletion import DeleteOptions, delete
from policysched.sandbox.storage.store import Backend, Stored
from policysched.sandbox.storage.writes import fetch

BUDGETS = "poddisruptionbudgets.policy"
_TOPOLOGY = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def bind(backend: Backend, namespace: str, name: str, binding: Any, *, dry_run: bool) -> Json:
    """Assign the pod as the Binding says; a pod that has a node, gates or another uid is a conflict."""
    metadata, target = _read(name, binding)
    pod = fetch(backend, PODS, namespace, name).object
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, found = metadata.get(field), pod["metadata"][field]
        if wanted and wanted != found:
            raise conflict("", "pods", name, precondition_failed("pods", (namespace, name), word, wanted, found))
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


def scale_of(workload: Json) -> Json:
    """Show a workload as a Scale."""
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
    """Return the workload with the Scale's replica count."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    name = workload["metadata"]["name"]
    if not isinstance(replicas, int) or replicas < 0:
        cause = wrong("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("autoscaling", "Scale", name, [cause])
    metadata = dict(workload["metadata"])
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        metadata["resourceVersion"] = version
    changed = {"metadata": metadata, "spec": workload["spec"] | {"replicas": replicas}}
    return workload | {"apiVersion": resource.api_version} | changed


def evict(backend: Backend, namespace: str, name: str, options: DeleteOptions) -> Stored:
    """Delete a pod unless a disruption budget has none to give: then 429."""
    entry = fetch(backend, PODS, namespace, name)
    budgets = [each for each in backend.store.entries(BUDGETS, namespace) if _guards(each, entry)]
    if len(budgets) > 1:
        raise StatusError(
            500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
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
        raise StatusError(
            429,
            "Cannot evict pod as it would violate the pod's disruption budget.",
            details={"causes": [{"reason": "DisruptionBudget", "message": text}]},
        )
    if not dry_run:
        backend.store.write(BUDGETS, obj | {"status": status | {"disruptionsAllowed": allowed - 1}})
