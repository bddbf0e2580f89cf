"""A request taken apart: who may send it, what its path points at, its body and its options.

It knows headers, paths, queries and media types, not what is done with them. Every body becomes the same dictionary,
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
from policysched.sandbox.storage.deletion import DeleteOptions
from policysched.sandbox.storage.writes import WriteOptions

_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_HTTP = 80
_OWN_SITES = frozenset({"same-origin", "none"})
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_FEW = 1000
_MOST_DIGITS = 19
_TRUE = frozenset({"true", "1", "True", "t"})


def check_origin(headers: Mapping[str, str], port: int) -> None:
    """Refuse a request that a foreign page sent, or that names another host than this machine.

    There is no authentication, and listening on loopback keeps other machines out but no browser: a page may send
    requests to any address, and may point a name of its own at 127.0.0.1. Browsers say in `Origin` and `Sec-Fetch-Site`
    which page asks and in `Host` by which name, and pages can change none of them.

    Raises:
        StatusError: 403.
    """
    hosts = {f"{name}:{port}" for name in _HOSTS} | (set(_HOSTS) if port == _HTTP else set())
    if headers.get("Host", "").lower() not in hosts:
        raise _refused("Host", headers.get("Host", ""), port)
    origin = headers.get("Origin")
    if origin is not None and origin.lower() not in {f"http://{host}" for host in hosts}:
        raise _refused("Origin", origin, port)
    site = headers.get("Sec-Fetch-Site", "none")
    if site.lower() not in _OWN_SITES:
        raise _refused("Sec-Fetch-Site", site, port)


def _refused(header: str, value: str, port: int) -> StatusError:
    return StatusError(403, f"{header} {value[:200]!a} is refused: the sandbox answers programs at 127.0.0.1:{port}")


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
    if media == _PROTOBUF or raw[:4] == protobuf.MAGIC:
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
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise StatusError(400, f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def options_of(query: Mapping[str, str]) -> WriteOptions:
    """Read the options of a write."""
    return WriteOptions(
        dry_run=query.get("dryRun") == "All",
        field_validation=query.get("fieldValidation") or "Warn",
        manager=query.get("fieldManager", ""),
    )


def delete_options(query: Mapping[str, str], body: Any) -> DeleteOptions:
    """Read the options of a deletion from the body, or else the query."""
    found = body if isinstance(body, dict) else {}
    grace = found.get("gracePeriodSeconds")
    if grace is None and "gracePeriodSeconds" in query:
        grace = number(query, "gracePeriodSeconds")
    propagation = found.get("propagationPolicy") or query.get("propagationPolicy", "")
    if found.get("orphanDependents"):
        propagation = "Orphan"
    wanted = found.get("preconditions") or {}
    return DeleteOptions(
        grace_seconds=grace,
        propagation=propagation,
        uid=wanted.get("uid") or "",
        resource_version=wanted.get("resourceVersion") or "",
        dry_run=bool(found.get("dryRun")) or query.get("dryRun") == "All",
    )
