"""Parts that all kinds of objects have: base struct, metadata, owner references, label selectors.

Structs are frozen and skip unknown fields while decoding, so an object uses memory only for fields that scheduling
reads.

Source: k8s.io/apimachinery/pkg/apis/meta/v1/types.go, v0.36.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""The type of integer fields; an integer outside of int64 makes the object malformed."""
Amount = str | Int64 | float
ResourceList = dict[str, Amount]


class Struct(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, frozen=True, gc=False):
    """Base of the structs of API objects: immutable, with camelCase keys, and defaults for absent fields.

    Structs cannot contain reference cycles, so the garbage collector need not track them.
    """


class OwnerReference(Struct, frozen=True):
    """A reference from an object to its owner, such as a ReplicaSet."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(Struct, frozen=True):
    """Name, UID, labels and other metadata of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generate_name: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []


class Requirement(Struct, frozen=True):
    """An entry of `matchExpressions` or `matchFields` in a label selector or node selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Struct, frozen=True):
    """A label selector; it depends on the field whether an absent selector matches nothing or everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()


LONGEST_TIMESTAMP = 64
"""Maximum length of a timestamp; a longer timestamp is malformed. Units: characters."""


def seconds_of(timestamp: str | None) -> float | None:
    """Return a timestamp as seconds since 1970, None if absent or malformed; without time zone, it is UTC."""
    return _seconds_of(timestamp) if timestamp and len(timestamp) <= LONGEST_TIMESTAMP else None


@lru_cache(maxsize=65536)
def _seconds_of(timestamp: str) -> float | None:
    try:
        read = datetime.fromisoformat(timestamp)
        return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
