"""One-time listing of all objects that a decision reads in a running cluster.

Nothing is watched or written. A kind that the server does not serve is treated as empty if clusters may lack it. A kind
that is served but forbidden is an error, because a decision without it would be a guess. Objects that a running
scheduler would leave out are left out. Other objects are kept whole, or reduced to the fields that scheduling reads if
other fields cannot be decoded.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

from policysched.app.clock import SystemClock
from policysched.errors import ConnectionProblemError, NoKubeconfigError
from policysched.framework import ApiError
from policysched.kube.connection import Connection
from policysched.kube.listing import in_served_version, is_served, read_list
from policysched.kube.object_cache import ObjectCache
from policysched.kube.transport import ANONYMOUS, Transport
from policysched.model.admission_kinds import ADMISSION_KINDS
from policysched.model.decode import ObjectError
from policysched.model.kinds import KINDS, POD_GROUPS, ApiKind
from policysched.model.policy import UnreadablePolicy
from policysched.reading.bounded_yaml import MAX_DEPTH
from policysched.reading.lenient_json import UNREADABLE, is_deeper, members

log = logging.getLogger(__name__)
Object = dict[str, Any]
READER: Final = "policysched-reader"
"""Name of the ClusterRole, defined in deploy/base/reader.yaml, that permits listing all kinds that a decision reads."""
LeftOut = Callable[[ObjectError], None]
"""Callback that receives an object that cannot be used."""


def _warn(error: ObjectError) -> None:
    log.warning("left out: %s", error)


async def read_cluster(
    kubeconfig: Path | None = None,
    context: str | None = None,
    kinds: Iterable[ApiKind[Any]] | None = None,
    left_out: LeftOut = _warn,
    missing: Callable[[str], None] = log.warning,
    version: Callable[[str], None] | None = None,
) -> list[Object]:
    """List all objects that a decision reads.

    Args:
        kubeconfig: The kubeconfig; default: as kubectl chooses it.
        context: The context; default: the current one.
        kinds: The kinds; default: all that scheduling and admission read.
        left_out: Called for each object that cannot be used; default: logs it.
        missing: Called with a message for each optional kind that cannot be listed.
        version: Called with the version of the API server; None does not read the version.

    Raises:
        ConnectionProblemError: the API server is unreachable, or rejects the credentials or a list.
    """
    async with _opened(kubeconfig, context) as connection:
        transport = Transport(connection)
        if version is not None:
            version(await transport.server_version())
        forbidden: dict[str, ApiError] = {}
        found = [
            {**item, "apiVersion": kind.api_version, "kind": kind.kind}
            for kind in (read_kinds() if kinds is None else kinds)
            for item in _usable(kind, await _listed(transport, kind, missing, forbidden), left_out)
        ]
    if forbidden:
        raise ConnectionProblemError(_missing_rights(connection.url, forbidden))
    return found


async def serves(kind: ApiKind[Any], kubeconfig: Path | None = None, context: str | None = None) -> bool:
    """Return whether an API server serves a kind of an API group.

    Args:
        kind: The kind.
        kubeconfig: The kubeconfig; default: as kubectl chooses it.
        context: The context; default: the current one.

    Raises:
        ConnectionProblemError: the API server is unreachable, or rejects the credentials or its discovery.
    """
    async with _opened(kubeconfig, context) as connection:
        return await is_served(Transport(connection), kind)


@asynccontextmanager
async def _opened(kubeconfig: Path | None, context: str | None) -> AsyncIterator[Connection]:
    """Open a connection to the API server, with errors as ConnectionProblemError inside this context."""
    try:
        connection = await Connection.open(
            SystemClock(), kubeconfig=str(kubeconfig) if kubeconfig else None, context=context
        )
    except NoKubeconfigError as error:
        raise NoKubeconfigError(f"{error}; to read the cluster from files, set --cluster") from error
    try:
        yield connection
    except ApiError as error:
        raise ConnectionProblemError(_refusal(connection.url, error)) from error
    finally:
        await connection.close()


def read_kinds() -> tuple[ApiKind[Any], ...]:
    """Return the kinds that are listed in a live cluster."""
    return (*KINDS.values(), *ADMISSION_KINDS)


def _refusal(url: str, error: ApiError) -> str:
    match error.status:
        case 0:
            return str(error)
        case HTTPStatus.UNAUTHORIZED:
            return f"{url} rejects the credentials: {error}"
    return f"{url} rejects a list request: {error}"


def _missing_rights(url: str, forbidden: Mapping[str, ApiError]) -> str:
    first = str(next(iter(forbidden.values())))
    if ANONYMOUS in first:
        return f"{url} forbids listing: {first}"
    return f'{url} forbids listing {", ".join(forbidden)}; ClusterRole "{READER}" has these rights: {first}'


_OPTIONAL: Final = frozenset((*(one.kind for one in ADMISSION_KINDS), "PriorityClass", POD_GROUPS.kind))
"""Kinds that may be absent: pod groups, and kinds that only admission plugins read, and only for new pods."""


async def _listed(
    transport: Transport, kind: ApiKind[Any], missing: Callable[[str], None], forbidden: dict[str, ApiError]
) -> list[msgspec.Raw]:
    """List a kind; if the API server forbids the list, record the error, or treat an optional kind as absent."""
    try:
        _, raws = await in_served_version(kind, lambda served: read_list(transport, served.path, served.kind))
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            if kind.kind in _OPTIONAL:
                missing(f"cannot list {kind.plural}: their effect on pods is not simulated: {error}")
            else:
                forbidden[f"{kind.plural}.{kind.group}".rstrip(".")] = error
            return []
        if error.status != HTTPStatus.NOT_FOUND or not kind.group or await is_served(transport, kind):
            raise
        return []
    return raws


class _Kept:
    """Collects the objects that a running scheduler would use, each with its JSON text."""

    incomplete = False

    def __init__(self) -> None:
        self.taken: list[tuple[Any, msgspec.Raw]] = []

    def take(self, obj: Any, raw: msgspec.Raw) -> None:
        self.taken.append((obj, raw))

    def drop(self, obj: Any) -> None:
        """Do nothing: a list deletes no objects."""

    def lacks(self, _: Any) -> bool:
        return False


def _usable(kind: ApiKind[Any], raws: Iterable[msgspec.Raw], left_out: LeftOut) -> Iterator[Object]:
    """Yield the usable objects of a list; finished pods are included."""
    kept = _Kept()
    cache = ObjectCache(replace(kind, keep=lambda _: True), lambda error, _: left_out(error), kept)
    cache.replacement().take(raws)
    for obj, raw in kept.taken:
        text = bytes(raw)  # one copy at a time: the list of a large cluster has hundreds of megabytes
        try:
            yield _whole(text) or _read_part(kind, obj, text)
        except ObjectError as error:
            left_out(error)


def _whole(text: bytes) -> Object | None:
    """Decode a whole object without `managedFields`, which need much memory; return None if decoding fails."""
    for tried in _with_and_without_managed_fields(text):
        if not is_deeper(tried, MAX_DEPTH):
            with suppress(*UNREADABLE):
                found: Object = msgspec.json.decode(tried)
                found["metadata"].pop("managedFields", None)
                return found
    return None


def _with_and_without_managed_fields(text: bytes) -> Iterator[bytes]:
    yield text
    yield _unmanaged(text)


def _unmanaged(text: bytes) -> bytes:
    """Remove `managedFields`, which can be deeply nested and is never used."""
    found = members(text)
    metadata = members(found.get("metadata", b""))
    metadata.pop("managedFields", None)
    return _joined(found | {"metadata": _joined(metadata)})


def _joined(found: dict[str, bytes]) -> bytes:
    return b"{%b}" % b",".join(msgspec.json.encode(name) + b":" + value for name, value in found.items())


def _read_part(kind: ApiKind[Any], obj: Any, text: bytes) -> Object:
    """Return an object reduced to the fields that scheduling reads; raw JSON in these fields stays unchanged.

    Raises:
        ObjectError: a part that has to be kept cannot be decoded.
    """
    if isinstance(obj, UnreadablePolicy):
        raise ObjectError(kind.kind, obj.metadata.name, obj.reason, obj.field)
    unread: list[Any] = []
    msgspec.to_builtins(obj, enc_hook=unread.append)
    if is_deeper(_unmanaged(text), MAX_DEPTH) and not unread:  # deeper parts were cut
        metadata = obj.metadata
        key = "/".join(filter(None, (metadata.namespace, metadata.name)))
        raise ObjectError(kind.kind, key, f"nested deeper than {MAX_DEPTH} levels")
    found: Object = msgspec.to_builtins(obj, builtin_types=(msgspec.Raw,))
    return found
