"""Objects of custom resources with their whole content; only plugins know which fields matter."""

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
"""HTTP status codes of a list request that mean that no objects exist: kind not installed, or list forbidden."""


class CustomObject(msgspec.Struct, frozen=True):
    """An object of a custom resource with its whole content."""

    resource: CustomResource
    metadata: Metadata
    content: dict[str, Any]
    """The object as the API server sent it; must not be changed."""


class _Named(msgspec.Struct):
    metadata: Metadata = Metadata()


@lru_cache(maxsize=256)
def custom_kind(resource: CustomResource) -> ApiKind[CustomObject]:
    """Return the `ApiKind` of a custom resource."""
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
