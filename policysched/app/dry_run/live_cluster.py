"""List, once, every object of a running cluster that a decision reads.

Plain lists, nothing is watched and nothing is written. Kinds that a cluster need not have count as empty where the
server says that it does not serve them; a kind that is there but may not be listed is an error, because a decision
without it would be a guess. An object that a running scheduler would leave out is left out here, and all others are
read whole. Where other fields than those that scheduling reads cannot be read, these are all that is kept of an object.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

from policysched.app.clock import SystemClock
from policysched.errors import ConnectionProblemError, NoKubeconfigError
from policysched.framework import ApiError
from policysched.kube.connection import Connection
from policysched.kube.listing import is_served, read_list
from policysched.kube.object_cache import ObjectCache
from policysched.kube.transport import Transport
from policysched.model.admission_kinds import ADMISSION_KINDS
from policysched.model.decode import ObjectError
from policysched.model.kinds import KINDS, ApiKind
from policysched.model.policy import UnreadablePolicy
from policysched.reading.bounded_yaml import MAX_DEPTH
from policysched.reading.lenient_json import UNREADABLE, is_deeper, members

log = logging.getLogger(__name__)
Object = dict[str, Any]
READER: Final = "policysched-reader"
"""The ClusterRole of deploy/base/user-roles.yaml with the right to list all of `read_kinds`."""
LeftOut = Callable[[ObjectError], None]
"""Hears of an object that cannot be used."""


def _warn(error: ObjectError) -> None:
    log.warning("left out: %s", error)


async def read_cluster(
    kubeconfig: Path | None = None,
    context: str | None = None,
    kinds: Iterable[ApiKind[Any]] | None = None,
    left_out: LeftOut = _warn,
    missing: Callable[[str], None] = log.warning,
) -> list[Object]:
    """List every object that a decision reads.

    Args:
        kubeconfig: The file to use; absent, what kubectl would use.
        context: The context in it; absent, its current one.
        kinds: Which kinds; absent, all that scheduling and admission read.
        left_out: Hears of each object that cannot be used; absent, the log.
        missing: Called with a message for each kind that only admission reads and that cannot be listed.

    Raises:
        ConnectionProblemError: the API server cannot be reached, or refuses the credentials or a list.
    """
    try:
        connection = await Connection.open(
            SystemClock(), kubeconfig=str(kubeconfig) if kubeconfig else None, context=context
        )
    except NoKubeconfigError as error:
        raise NoKubeconfigError(f"{error}; to read the cluster from files, set --cluster") from error
    try:
        transport = Transport(connection)
        forbidden: dict[str, ApiError] = {}
        found = [
            {**item, "apiVersion": kind.api_version, "kind": kind.kind}
            for kind in (read_kinds() if kinds is None else kinds)
            for item in _usable(kind, await _listed(transport, kind, missing, forbidden), left_out)
        ]
    except ApiError as error:
        raise ConnectionProblemError(_refusal(connection.url, error)) from error
    finally:
        await connection.close()
    if forbidden:
        raise ConnectionProblemError(_missing_rights(connection.url, forbidden))
    return found


def read_kinds() -> tuple[ApiKind[Any], ...]:
    """Return the kinds that are read of a live cluster."""
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
    return f'{url} forbids listing {", ".join(forbidden)}; ClusterRole "{READER}" has these rights: {first}'


_ADMISSION: Final = frozenset((*(one.kind for one in ADMISSION_KINDS), "PriorityClass"))
"""The kinds that only admission reads: the pods of the cluster already have what these objects give."""


async def _listed(
    transport: Transport, kind: ApiKind[Any], missing: Callable[[str], None], forbidden: dict[str, ApiError]
) -> list[msgspec.Raw]:
    """List a kind; if it is forbidden, add it to `forbidden`, or to the missing kinds if only admission reads it."""
    try:
        _, raws = await read_list(transport, kind.path, kind.kind)
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            if kind.kind in _ADMISSION:
                missing(f"cannot list {kind.plural}: their effect on pods is not simulated: {error}")
            else:
                forbidden[f"{kind.plural}.{kind.group}".rstrip(".")] = error
            return []
        if error.status != HTTPStatus.NOT_FOUND or not kind.group or await is_served(transport, kind.path):
            raise
        return []
    return raws


class _Kept:
    """Keeps the objects that a running scheduler takes of a list, each with its text."""

    incomplete = False

    def __init__(self) -> None:
        self.taken: list[tuple[Any, bytes]] = []

    def take(self, obj: Any, raw: msgspec.Raw) -> None:
        self.taken.append((obj, bytes(raw)))

    def drop(self, obj: Any) -> None:
        """Do nothing: a list takes nothing away."""

    def lacks(self, _: Any) -> bool:
        return False


def _usable(kind: ApiKind[Any], raws: Iterable[msgspec.Raw], left_out: LeftOut) -> Iterator[Object]:
    """Give what can be used of a list; finished pods are not left out."""
    kept = _Kept()
    cache = ObjectCache(replace(kind, keep=lambda _: True), lambda error, _: left_out(error), kept)
    cache.replacement().take(raws)
    for obj, text in kept.taken:
        try:
            yield _whole(text) or _read_part(kind, obj, text)
        except ObjectError as error:
            left_out(error)


def _whole(text: bytes) -> Object | None:
    """Read all of an object, at least what stands beside its `managedFields`; None where that cannot be read."""
    for tried in _with_and_without_managed_fields(text):
        if not is_deeper(tried, MAX_DEPTH):
            with suppress(*UNREADABLE):
                found: Object = msgspec.json.decode(tried)
                return found
    return None


def _with_and_without_managed_fields(text: bytes) -> Iterator[bytes]:
    yield text
    yield _unmanaged(text)


def _unmanaged(text: bytes) -> bytes:
    """Leave out `managedFields`, which may be nested deeply and which nobody reads."""
    found = members(text)
    metadata = members(found.get("metadata", b""))
    metadata.pop("managedFields", None)
    return _joined(found | {"metadata": _joined(metadata)})


def _joined(found: dict[str, bytes]) -> bytes:
    return b"{%b}" % b",".join(msgspec.json.encode(name) + b":" + value for name, value in found.items())


def _read_part(kind: ApiKind[Any], obj: Any, text: bytes) -> Object:
    """Return what scheduling reads of an object; texts of JSON in it that nobody reads stay as they are.

    Raises:
        ObjectError: that is not all of what is to be kept.
    """
    if isinstance(obj, UnreadablePolicy):
        raise ObjectError(kind.kind, obj.metadata.name, obj.reason, obj.field)
    unread: list[Any] = []
    msgspec.to_builtins(obj, enc_hook=unread.append)
    if is_deeper(_unmanaged(text), MAX_DEPTH) and not unread:  # what lies deeper was cut
        metadata = obj.metadata
        key = "/".join(filter(None, (metadata.namespace, metadata.name)))
        raise ObjectError(kind.kind, key, f"nested deeper than {MAX_DEPTH} levels")
    found: Object = msgspec.to_builtins(obj, builtin_types=(msgspec.Raw,))
    return found
