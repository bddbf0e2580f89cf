"""List, once, every object of a running cluster that a decision reads.

Plain lists, nothing is watched and nothing is written. Kinds that a cluster need not have count as empty where the
server says that it does not serve them; a kind that is there but may not be listed is an error, because a decision
without it would be a guess.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec

from policysched.app.clock import SystemClock
from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError
from policysched.kube.connection import Connection
from policysched.kube.listing import is_served, read_list
from policysched.kube.transport import Transport
from policysched.model.kinds import KINDS, ApiKind

Object = dict[str, Any]


async def read_cluster(
    kubeconfig: Path | None = None, context: str | None = None, kinds: Iterable[ApiKind[Any]] | None = None
) -> list[Object]:
    """List every object that a decision reads.

    Args:
        kubeconfig: The file to use; absent, what kubectl would use.
        context: The context in it; absent, its current one.
        kinds: Which kinds; absent, all that scheduling reads.

    Raises:
        ConnectionProblemError: the API server cannot be reached, or refuses the credentials or a list.
    """
    connection = await Connection.open(
        SystemClock(), kubeconfig=str(kubeconfig) if kubeconfig else None, context=context
    )
    try:
        transport = Transport(connection)
        return [
            {"apiVersion": kind.api_version, "kind": kind.kind, **item}
            for kind in (KINDS.values() if kinds is None else kinds)
            for item in await _items(transport, kind)
        ]
    except ApiError as error:
        raise ConnectionProblemError(_refusal(connection.url, error)) from error
    finally:
        await connection.close()


def _refusal(url: str, error: ApiError) -> str:
    match error.status:
        case 0:
            return str(error)
        case HTTPStatus.UNAUTHORIZED:
            return f"{url} does not accept the credentials: {error}"
    return f"{url} refuses a list: {error}"


async def _items(transport: Transport, kind: ApiKind[Any]) -> list[Object]:
    try:
        _, raws = await read_list(transport, kind.path, kind.kind)
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND or not kind.group or await is_served(transport, kind.path):
            raise
        return []
    return [msgspec.json.decode(raw) for raw in raws]
