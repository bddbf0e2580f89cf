"""How a stored object looks in another API version of its resource.

Events are stored as core events and read as events.k8s.io ones too; custom resources differ in their
apiVersion alone. It knows nothing of requests; a view is a function of the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from policysched.sandbox.objects.resources import Resource

Json = dict[str, Any]
_TO_NEW = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_TO_CORE = {new: old for old, new in _TO_NEW.items()}


def outward(resource: Resource) -> Callable[[Json], Json] | None:
    """Return how to show a stored object in this version, or None where it is stored so."""
    if resource.group == "events.k8s.io":
        return _event_out
    if resource.custom is not None and not resource.custom.get("storage"):
        version = resource.api_version
        return lambda obj: obj | {"apiVersion": version}
    return None


def inward(resource: Resource, obj: Json) -> Json:
    """Turn an object of this version into the stored form."""
    if resource.key == "events":
        return _event_in(obj)
    if resource.custom is not None and resource.custom.get("storedVersion"):
        return obj | {"apiVersion": f"{resource.group}/{resource.custom['storedVersion']}"}
    return obj


def _event_out(obj: Json) -> Json:
    renamed = {_TO_NEW.get(name, name): value for name, value in obj.items()}
    return renamed | {"apiVersion": "events.k8s.io/v1"}


def _event_in(obj: Json) -> Json:
    if obj.get("apiVersion") == "events.k8s.io/v1":
        obj = {_TO_CORE.get(name, name): value for name, value in obj.items()}
    empty: Json = {"source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None}
    empty |= {"involvedObject": {}, "reportingComponent": "", "reportingInstance": ""}
    return empty | obj | {"apiVersion": "v1"}
