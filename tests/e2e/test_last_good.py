"""The annotation that keeps the last good generation, while others write to the same policy."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import pytest

from policysched.app.clock import SystemClock
from policysched.framework import ApiError
from policysched.kube.client import KubeClient
from policysched.kube.connection import Connection
from policysched.kube.events.writer import EventWriter
from policysched.kube.transport import Pacing, Transport
from policysched.model.policy import LAST_GOOD, LastGood, Policy, decode_last_good, decode_policy
from tests.e2e.conftest import Running
from tests.e2e.objects import node, only
from tests.e2e.server import Server
from tests.e2e.waiting import until

NOTE = {LAST_GOOD: "kept"}


@pytest.fixture
async def client(server: Server) -> AsyncIterator[KubeClient]:
    connection = await Connection.open(SystemClock(), kubeconfig=str(server.kubeconfig))
    transport, pacing = Transport(connection), Pacing(random.random)
    yield KubeClient(transport, EventWriter(transport, pacing, "test"), pacing)
    await connection.close()


async def policy_of(server: Server) -> Policy:
    return decode_policy(await server.get("SchedulingPolicy", "pin"))


async def note_of(server: Server) -> str | None:
    return (await policy_of(server)).metadata.annotations.get(LAST_GOOD)


async def kept_of(server: Server) -> LastGood | None:
    return decode_last_good(await policy_of(server))


async def write_status(server: Server, rules: int) -> None:
    await server.patch("SchedulingPolicy", "pin", {"status": {"rules": rules}}, "/status")


@pytest.mark.parametrize("annotations", [{}, {"theirs": "x"}], ids=["first", "another"])
async def test_annotation_is_written_beside_a_status(
    server: Server, client: KubeClient, annotations: dict[str, str]
) -> None:
    await server.load(only("pin", "n1"))
    await server.patch("SchedulingPolicy", "pin", {"metadata": {"annotations": annotations}})
    known = await policy_of(server)
    await write_status(server, 7)
    assert await client.annotate_policy(known, NOTE) == ""
    found = await policy_of(server)
    assert (found.metadata.annotations, found.status.rules) == ({**annotations, **NOTE}, 7)
    assert await client.annotate_policy(found, NOTE) == found.metadata.resource_version


@pytest.mark.parametrize("annotations", [{}, {"theirs": "x"}], ids=["first", "another"])
async def test_annotation_of_an_older_generation_is_refused(
    server: Server, client: KubeClient, annotations: dict[str, str]
) -> None:
    await server.load(only("pin", "n1"))
    await server.patch("SchedulingPolicy", "pin", {"metadata": {"annotations": annotations}})
    known = await policy_of(server)
    await server.patch("SchedulingPolicy", "pin", only("pin", "n2"))
    with pytest.raises(ApiError) as refused:
        await client.annotate_policy(known, NOTE)
    assert (refused.value.status, await note_of(server)) == (409, None)


async def test_annotation_of_a_policy_made_anew_is_refused(server: Server, client: KubeClient) -> None:
    await server.load(only("pin", "n1"))
    known = await policy_of(server)
    await server.delete("SchedulingPolicy", "pin")
    await server.load(only("pin", "n1"))
    with pytest.raises(ApiError) as refused:
        await client.annotate_policy(known, NOTE)
    assert (refused.value.status, await note_of(server)) == (409, None)


async def test_annotation_takes_nobody_elses_away(server: Server, client: KubeClient) -> None:
    await server.load(only("pin", "n1"))
    known = await policy_of(server)
    await server.patch("SchedulingPolicy", "pin", {"metadata": {"annotations": {"theirs": "x"}}})
    with pytest.raises(ApiError) as refused:
        await client.annotate_policy(known, NOTE)
    assert refused.value.status == 409
    assert (await policy_of(server)).metadata.annotations == {"theirs": "x"}


async def test_last_good_generation_is_kept_while_others_write_statuses(server: Server, running: Running) -> None:
    await server.load(node("n1"), only("pin", "n1"))

    async def write_for_ever() -> None:
        rules = 0
        while True:
            await asyncio.gather(*(write_status(server, rules := rules + 1) for _ in range(4)))

    async with running():
        await server.policy_says("pin", 1, Active="Enforce")
        storm = asyncio.create_task(write_for_ever())
        await server.patch("SchedulingPolicy", "pin", only("pin", "n2"))
        kept = await until(lambda: kept_of(server), lambda seen: seen is not None and seen.generation == 2)
        storm.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await storm
    assert kept is not None
    assert [(one.name, one.require) for one in kept.spec.filters] == [("here", 'node.name == "n2"')]
