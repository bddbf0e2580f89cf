"""A sandbox that is started anew on the port of another."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import aiohttp

from policysched.app.demo.sandbox_setup import new_sandbox
from policysched.sandbox import Sandbox
from tests.sandbox.conftest import Api, Clock

PODS = "/api/v1/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def made(clock: Clock, first_version: int) -> Sandbox:
    return Sandbox(clock, random.Random(7), kubelet_seconds=None, first_version=first_version)


async def test_versions_of_the_one_before_are_too_old() -> None:
    """A watch that goes on where it was must learn that everything changed, also on resources without history."""
    clock = Clock()
    before = made(clock, 1000)
    await before.start()
    port = int(before.url.rpartition(":")[2])
    async with aiohttp.ClientSession() as session:
        api = Api(session, before.url)
        await api.post(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        known = (await api.get(PODS))[1]["metadata"]["resourceVersion"]
        await before.stop()
        after = made(clock, 2000)
        await after.start(port)
        for path in (PODS, CONFIG_MAPS):
            [event] = await api.watch(path, 0, resourceVersion=known, timeoutSeconds="5")
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        code, found = await api.get(PODS, resourceVersion=known, resourceVersionMatch="Exact")
        assert (code, found["reason"]) == (410, "Expired")
        assert int((await api.get(PODS))[1]["metadata"]["resourceVersion"]) > 2000
        await after.stop()


async def test_a_version_that_was_never_given_is_refused(quiet: Sandbox, quiet_api: Api) -> None:
    """It belongs to another server: waiting for it would show the watch nothing for a long time."""
    [event] = await quiet_api.watch(PODS, 0, resourceVersion=str(quiet.revision + 10**6), timeoutSeconds="5")
    assert event["object"]["code"] == 410


def test_a_later_sandbox_counts_from_above() -> None:
    begun = int(datetime.now(UTC).timestamp() * 1_000_000)
    before = new_sandbox()
    after = new_sandbox()
    assert begun < before.revision < after.revision
