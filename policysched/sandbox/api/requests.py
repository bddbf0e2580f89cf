"""A request taken apart: which resource, namespace, name and subresource a path means, and the body.

It knows paths, queries and media types, not what is done with them. Every body becomes the same dictionary,
whether it came as JSON, YAML or protobuf, so that nothing behind this module knows of formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from policysched.sandbox.objects import decode, protobuf
from policysched.sandbox.objects.errors import StatusError
from policysched.sandbox.objects.resources import ApiResource, Registry

PROTOBUF = "application/vnd.kubernetes.protobuf"
_FEW = 1000
_TRUE = frozenset({"true", "1", "True", "t"})


@dataclass(frozen=True, slots=True)
class Target:
    """What a path points at; without a name it is the collection."""

    resource: ApiResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def target_of(registry: Registry, path: str) -> Target | None:
    """Find what a path points at, or None where nothing is served there."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"]:
        group, version, rest = "", parts[1] if len(parts) > 1 else "", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 2:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and registry.find(group, version, rest[2]):
        namespace, rest = rest[1], rest[2:]
    resource = registry.find(group, version, rest[0]) if rest else None
    if resource is None or len(rest) > 3 or bool(namespace) > resource.namespaced:
        return None
    name, subresource = [*rest[1:], "", ""][:2]
    if subresource and subresource not in resource.subresources:
        return None
    return Target(resource, namespace, name, subresource)


def body_of(raw: bytes, content_type: str) -> Any:
    """Decode a request's body by its media type."""
    media = content_type.partition(";")[0].strip().lower()
    if media == PROTOBUF or raw[:4] == protobuf.MAGIC:
        return protobuf.decode(raw)
    if not raw:
        return None
    try:
        return _yaml(raw) if media.endswith("yaml") else decode(raw)
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise StatusError(400, f"error decoding the request's body: {error}") from error
    except RecursionError as error:
        raise StatusError(400, "error decoding the request's body: exceeded max depth") from error


def _yaml(raw: bytes) -> Any:
    """Decode YAML; no text holds more values than characters unless its aliases repeat them."""
    value = yaml.safe_load(raw)
    if _values(value, {}) > len(raw) + _FEW:
        raise StatusError(400, "error decoding the request's body: yaml: document contains excessive aliasing")
    return value


def _values(value: Any, known: dict[int, int]) -> int:
    """Count the values in a value, aliases followed."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_values(one, known) for one in inner)
    return known[id(value)]


def flag(query: Mapping[str, str], name: str) -> bool:
    """Read a boolean of the query."""
    return query.get(name, "") in _TRUE


def number(query: Mapping[str, str], name: str) -> int:
    """Read a whole number of the query; absent is 0."""
    text = query.get(name, "") or "0"
    if not text.isdigit():
        raise StatusError(400, f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)
