"""The scale subresource and evictions.

A Scale is a view of a workload's replica count, made and taken apart here; the workload itself is written like
any other update. An eviction is a deletion that asks the pod's disruption budgets first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import StatusError, invalid, wrong
from policysched.sandbox.objects.resources import PODS
from policysched.sandbox.objects.selectors import object_selected
from policysched.sandbox.storage.deletion import DeleteOptions, delete
from policysched.sandbox.storage.writes import fetch

if TYPE_CHECKING:
    from policysched.sandbox.objects.resources import ApiResource
    from policysched.sandbox.storage.backend import Backend
    from policysched.sandbox.storage.store import Stored

BUDGETS = "poddisruptionbudgets.policy"


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


def selector_text(selector: Json | None) -> str:
    """Write a selector as kubectl does."""
    if not selector:
        return ""
    plain = "matchLabels" not in selector and "matchExpressions" not in selector
    labels = selector if plain else selector.get("matchLabels") or {}
    parts = [f"{key}={value}" for key, value in sorted(labels.items())]
    for term in () if plain else selector.get("matchExpressions") or ():
        values = ",".join(sorted(term.get("values") or ()))
        match term["operator"]:
            case "Exists":
                parts.append(term["key"])
            case "DoesNotExist":
                parts.append(f"!{term['key']}")
            case operator:
                parts.append(f"{term['key']} {operator.lower()} ({values})")
    return ",".join(parts)


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
