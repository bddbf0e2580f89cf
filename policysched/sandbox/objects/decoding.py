"""From a request's object to one that can be stored: strict decoding, pruning, defaults, validation.

It knows kinds through the field table or a CRD's schema, and not the store. Whether unknown fields are an error,
a warning or nothing is the request's choice, as in the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policysched.sandbox.objects import schema as structural
from policysched.sandbox.objects import strict, validation
from policysched.sandbox.objects.defaults import apply_defaults
from policysched.sandbox.objects.errors import ApiError, invalid
from policysched.sandbox.objects.fieldtypes import Type, type_of
from policysched.sandbox.storage import crds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policysched.sandbox.objects.errors import Cause
    from policysched.sandbox.objects.resources import Resource

Json = dict[str, Any]
_METADATA = Type("struct", "meta.ObjectMeta")


class StrictError(ApiError):
    """An object with fields that its kind does not have, where the request forbids them."""

    def __init__(self, resource: Resource, why: str) -> None:
        super().__init__(400, _handled(resource, why))
        self.why = why


def check_kind(resource: Resource, obj: Any) -> Json:
    """Make sure that the object is of the resource's kind and version."""
    if not isinstance(obj, dict):
        raise ApiError(
            400,
            "couldn't get version/kind; json parse error: json: cannot unmarshal the body into Go value of type struct",
        )
    kind, version = obj.get("kind") or resource.kind, obj.get("apiVersion") or resource.api_version
    if kind != resource.kind:
        text = f'"{kind}" is not the kind of {resource.qualified}, which is "{resource.kind}"'
        raise ApiError(400, f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {text}')
    if version != resource.api_version:
        raise ApiError(
            400,
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})",
        )
    metadata = obj.get("metadata")
    return obj | {"kind": kind, "apiVersion": version, "metadata": metadata if metadata is not None else {}}


def clean(resource: Resource, obj: Json, field_validation: str) -> list[str]:
    """Drop unknown fields; returns warnings, or fails where the request is strict."""
    try:
        unknown = _unknown(resource, obj)
    except ApiError as error:
        raise ApiError(error.code, _handled(resource, str(error))) from error
    if unknown and field_validation == "Strict":
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise StrictError(resource, f"strict decoding error: {listed}")
    if field_validation == "Ignore":
        return []
    return [f'unknown field "{path}"' for path in unknown]


def _handled(resource: Resource, why: str) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}'


def _unknown(resource: Resource, obj: Json) -> list[str]:
    kind = type_of(resource)
    if kind is not None:
        return strict.prune(obj, kind)
    unknown = [f"metadata.{path}" for path in strict.prune(obj["metadata"], _METADATA)]
    return unknown + structural.prune(obj, schema_of(resource))


def schema_of(resource: Resource) -> Json:
    """Return the structural schema of a custom resource."""
    custom = resource.custom or {}
    found: Json = (custom.get("schema") or {}).get("openAPIV3Schema") or {}
    return found


def complete(resource: Resource, obj: Json) -> None:
    """Fill in the defaults of the kind or the schema."""
    if resource.custom is not None:
        structural.default(obj, schema_of(resource))
    elif resource.key == crds.DEFINITIONS:
        crds.complete(obj)
    else:
        apply_defaults(resource, obj)


def validated(resource: Resource, obj: Json, changed: Sequence[Cause] = ()) -> None:
    """Fail with 422 where the object breaks its kind's rules, or changed what it must not."""
    causes = validation.validate(resource, obj)
    if resource.custom is not None:
        causes += structural.validate(obj, schema_of(resource))
    if resource.key == crds.DEFINITIONS:
        causes += crds.faults(obj)
    causes += changed
    if causes:
        raise invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), causes)
