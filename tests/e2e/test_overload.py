"""Requests that a real API server refuses because there are too many: Priority and Fairness answers 429."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.plane import ControlPlane
from tests.e2e.holding import watched
from tests.e2e.objects import Json, node, pod
from tests.e2e.server import Server, scheduled_condition
from tests.e2e.test_permissions import POLICIES, SCHEDULING
from tests.e2e.waiting import DEADLINE

pytestmark = pytest.mark.controlplane
USER: Final = "scheduler"
NAME: Final = "overloaded"
REFUSED: Final = "has received too many requests and asks to try again later"
GROUP: Final = "/apis/flowcontrol.apiserver.k8s.io/v1"
VERSION: Final = "flowcontrol.apiserver.k8s.io/v1"
LEVEL: Final[Json] = {
    "apiVersion": VERSION,
    "kind": "PriorityLevelConfiguration",
    "metadata": {"name": NAME},
    "spec": {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 0,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        },
    },
}
"""One request at a time; others are refused."""
ALL: Final[Json] = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
SCHEMA: Final[Json] = {
    "apiVersion": VERSION,
    "kind": "FlowSchema",
    "metadata": {"name": NAME},
    "spec": {
        "matchingPrecedence": 2,
        "priorityLevelConfiguration": {"name": NAME},
        "rules": [{"subjects": [{"kind": "User", "user": {"name": USER}}], "resourceRules": [ALL]}],
    },
}
HEAD: Final = "{} HTTP/1.1\r\nHost: server\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n"


def begin_request(plane: ControlPlane, what: str, length: int = 0) -> ssl.SSLSocket:
    """Send the head of a request of the user."""
    plain = socket.create_connection(("127.0.0.1", int(plane.url.rpartition(":")[2])))
    connection = plane.identities.tls().wrap_socket(plain, server_hostname="127.0.0.1")
    connection.sendall(HEAD.format(what, plane.identities.token(USER), length).encode())
    return connection


def is_refused(plane: ControlPlane) -> bool:
    """Whether a request of the user is refused."""
    with begin_request(plane, "GET /api/v1/nodes?limit=1") as connection:
        return connection.recv(64).startswith(b"HTTP/1.1 429 ")


def overload(plane: ControlPlane, stack: contextlib.ExitStack) -> None:
    """Keep a request under way whose body never comes: it is the one request at a time."""
    for _ in range(100):
        stack.enter_context(begin_request(plane, "POST /api/v1/namespaces/default/pods/none/binding", 99))
        time.sleep(0.05)
        if is_refused(plane) and is_refused(plane):
            return
    raise AssertionError("no request is refused")


@contextlib.asynccontextmanager
async def overloaded(server: Server, plane: ControlPlane) -> AsyncIterator[None]:
    """Have the server refuse all requests of the user with 429."""
    await server.call("POST", f"{GROUP}/prioritylevelconfigurations", LEVEL)
    await server.call("POST", f"{GROUP}/flowschemas", SCHEMA)
    try:
        with contextlib.ExitStack() as stack:
            await asyncio.to_thread(overload, plane, stack)
            yield
    finally:
        await server.call("DELETE", f"{GROUP}/flowschemas/{NAME}")
        await server.call("DELETE", f"{GROUP}/prioritylevelconfigurations/{NAME}")


async def test_overloaded_server_is_waited_for_at_the_start_and_with_bindings(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path
) -> None:
    control_plane.allow(USER, *SCHEDULING, *POLICIES)
    names = [f"p{number}" for number in range(10)]
    await real_server.load(node("n1"), node("n2"), pod("first"))
    async with watched(control_plane.token_kubeconfig(tmp_path / "config", USER), wait=False) as scheduler:
        async with overloaded(real_server, control_plane):
            await scheduler.begin()
            await scheduler.said(f"nodes: {control_plane.url} {REFUSED}")
        await real_server.placed("first")
        async with overloaded(real_server, control_plane):
            await real_server.load(*map(pod, names))
            await scheduler.said("/binding is repeated in ", times=len(names))
            assert set((await real_server.nodes_of(names)).values()) == {""}
        await real_server.placed(*names)
        await scheduler.holds_what_is_listed(real_server, DEADLINE)
    assert not scheduler.saying("SchedulerError")
    for name in names:
        assert scheduled_condition(await real_server.get("Pod", name))["status"] == "True"
        assert [one["reason"] for one in await real_server.events(name)] == ["Scheduled"]
