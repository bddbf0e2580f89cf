"""Objects of custom resources: read whole, because only a plugin knows what matters in them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Final

import msgspec

from policysched.model.decode import ObjectError, decode
from policysched.model.kinds import ApiKind, CustomResource
from policysched.model.objects import Metadata
from policysched.reading.lenient_json import UNREADABLE

_MISSING: Final = frozenset((403, 404))
"""The resource is not installed, or not for us to read: then there is no such object."""


class CustomObject(msgspec.Struct, frozen=True):
    """An object of a custom resource."""

    resource: CustomResource
    metadata: Metadata
    content: dict[str, Any]
    """The object as the API server writes it, not to be written to."""


class _Named(msgspec.Struct):
    metadata: Metadata = Metadata()


@lru_cache(maxsize=256)
def custom_kind(resource: CustomResource) -> ApiKind[CustomObject]:
    """Declare the kind of a custom resource's objects."""
    plural, version, group = resource.value.split(".", 2)
    read = partial(_decode, resource)
    return ApiKind(f"{group}/{version}", resource.value, plural, read, resource, tolerated=_MISSING)


def _decode(resource: CustomResource, raw: bytes | Mapping[str, Any]) -> CustomObject:
    metadata = decode(_Named, resource.value, raw).metadata
    try:
        content = msgspec.json.decode(raw, type=dict[str, Any]) if isinstance(raw, bytes) else dict(raw)
    except UNREADABLE as error:
        raise ObjectError(resource.value, metadata.name, str(error)) from error
    return CustomObject(resource, metadata, content)
