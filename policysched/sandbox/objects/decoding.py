"""From a request's object to one that can be stored, and back: pruning, defaults, validation, versions.

It knows kinds by their schemas and not the store. Whether unknown fields are an error, a warning or nothing is the
request's choice, as in the API server. Events are stored as core events and read as events.k8s.io ones too; versions
of custom resources differ in their apiVersion alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from policysched.sandbox.objects import Json, kinds, schema
from policysched.sandbox.objects.errors import Cause, StatusError, invalid
from policysched.sandbox.objects.resources import OBJECT_META, ApiResource

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
_OMITTED: Json = {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}
"""What metadata does not hold where it is empty."""


class StrictError(StatusError):
    """An object with fields that its kind does not have, where the request forbids them."""

    def __init__(self, resource: ApiResource, why: str) -> None:
        super().__init__(400, _handled(resource, why))
        self.why = why


def check_kind(resource: ApiResource, obj: Any) -> Json:
    """Make sure that the object is of the resource's kind and version."""
    if not isinstance(obj, dict):
        raise StatusError(
            400,
            "couldn't get version/kind; json parse error: json: cannot unmarshal the body into Go value of type struct",
        )
    kind, version = obj.get("kind") or resource.kind, obj.get("apiVersion") or resource.api_version
    if kind != resource.kind:
        text = f'"{kind}" is not the kind of {resource.qualified}, which is "{resource.kind}"'
        raise StatusError(400, f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {text}')
    if version != resource.api_version:
        raise StatusError(
            400,
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})",
        )
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata = {name: value for name, value in metadata.items() if value != _OMITTED.get(name, ...)}
    return obj | {"kind": kind, "apiVersion": version, "metadata": metadata if metadata is not None else {}}


def drop_unknown(resource: ApiResource, obj: Json, field_validation: str) -> list[str]:
    """Drop unknown fields and return warnings, or fail where fieldValidation is Strict."""
    try:
        unknown = _unknown(resource, obj)
    except StatusError as error:
        raise StatusError(error.code, _handled(resource, str(error))) from error
    if unknown and field_validation == "Strict":
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise StrictError(resource, f"strict decoding error: {listed}")
    if field_validation == "Ignore":
        return []
    return [f'unknown field "{path}"' for path in unknown]


def _handled(resource: ApiResource, why: str) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}'


def _unknown(resource: ApiResource, obj: Json) -> list[str]:
    unknown = schema.prune(obj, resource.schema)
    if resource.custom is not None:
        unknown = [f"metadata.{path}" for path in schema.prune(obj["metadata"], OBJECT_META)] + unknown
    return unknown


def validated(resource: ApiResource, obj: Json, changed: Sequence[Cause] = ()) -> None:
    """Fail with 422 where the object breaks its kind's rules, or changed what it must not."""
    causes = kinds.validate(resource, obj)
    if resource.custom is not None:
        causes += schema.validate(obj, resource.schema)
    causes += changed
    if causes:
        raise invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), causes)


def outward(resource: ApiResource) -> Callable[[Json], Json] | None:
    """Return the conversion from the storage version to this one, None where they are the same."""
    if resource.group == "events.k8s.io":
        return _event_out
    if resource.custom is not None and not resource.custom.get("storage"):
        version = resource.api_version
        return lambda obj: obj | {"apiVersion": version}
    return None


def inward(resource: ApiResource, obj: Json) -> Json:
    """Convert an object of this version to the storage version."""
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
