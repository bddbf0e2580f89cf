"""Fills a control plane with objects, in an order that works, and waits until each can be used.

It knows what the API server and the controllers do to a new object: a namespace takes pods once it has its service
account, a node is tainted until the controllers have seen that it is Ready, a definition is served after a moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from tests.controlplane.api import Api, Json

NOT_READY: Final = "node.kubernetes.io/not-ready"
DEADLINE: Final = 30.0
"""Units: seconds."""
_ORDER: Final = ("CustomResourceDefinition", "Namespace", "PriorityClass", "StorageClass", "Node")


def until(holds: Callable[[], Any], what: str, seconds: float = DEADLINE) -> Any:
    """Ask again and again until the answer is true, and give it.

    Raises:
        AssertionError: it is never so.
    """
    end = time.monotonic() + seconds
    while not (answer := holds()):
        assert time.monotonic() < end, f"not so after {seconds:g} s: {what}"
        time.sleep(0.02)
    return answer


def load(api: Api, objects: Iterable[Json]) -> None:
    """Create objects, those that others need first; lists are taken apart.

    Nodes keep the status that they come with, and are waited for until they are untainted if that says Ready or nothing
    of it. Pods are made pending, or bound where they name a node. A namespace that is missing is made.
    """
    rank = {kind: number for number, kind in enumerate(_ORDER)}
    flat = [item for obj in objects for item in (obj["items"] if str(obj.get("kind", "")).endswith("List") else [obj])]
    named = {obj["metadata"]["namespace"] for obj in flat if obj["metadata"].get("namespace")}
    told = {obj["metadata"]["name"] for obj in flat if obj["kind"] == "Namespace"}
    missing = sorted(named - told - _present(api, named | told))
    flat += [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in missing]
    for step in (*_ORDER, ""):
        group = [obj for obj in flat if (obj["kind"] if obj["kind"] in rank else "") == step]
        for obj in group:
            api.create(obj)
        for obj in group:
            await_use(api, obj)


def _present(api: Api, wanted: set[str]) -> set[str]:
    """Give the names of the namespaces, once none that is wanted is on its way out."""

    def settled() -> list[Json]:
        found = api.objects("Namespace")
        leaving = [each["metadata"]["name"] for each in found if "deletionTimestamp" in each["metadata"]]
        return [] if wanted.intersection(leaving) else found

    return {each["metadata"]["name"] for each in until(settled, f"namespaces {sorted(wanted)} gone or there")}


def await_use(api: Api, obj: Json) -> None:
    """Wait until an object that exists can be used; `kubectl wait` fails while a definition has no conditions."""
    name = obj["metadata"].get("name", "")
    match obj["kind"]:
        case "Namespace":
            path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            until(lambda: api.answers(path), f"the service account of namespace {name}")
        case "Node" if _to_be_ready(obj):
            until(lambda: _usable(api.get("Node", name)), f"node {name} Ready and without the taint {NOT_READY}")
        case "CustomResourceDefinition":
            spec = obj["spec"]
            served = [f"/apis/{spec['group']}/{each['name']}" for each in spec["versions"] if each["served"]]
            plural = spec["names"]["plural"]
            until(lambda: all(api.answers(f"{each}/{plural}") for each in served), f"the API of {name}")


def _to_be_ready(node: Json) -> bool:
    """Whether a node says that it is Ready, or will because its kubelet says so."""
    if any(each["key"] == NOT_READY for each in node.get("spec", {}).get("taints") or ()):
        return False
    told = [each["status"] for each in _ready_conditions(node)]
    return told == ["True"] if told else node["metadata"].get("labels", {}).get("kubelet") != "none"


def _usable(node: Json) -> bool:
    tainted = any(each["key"] == NOT_READY for each in node["spec"].get("taints") or ())
    return not tainted and bool(_ready_conditions(node))


def _ready_conditions(node: Json) -> list[Json]:
    return [each for each in node.get("status", {}).get("conditions") or () if each["type"] == "Ready"]
