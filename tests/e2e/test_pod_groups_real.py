"""Pod groups on a real API server that serves them: conditions, bindings, and the end of a group."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane.commands import POD_GROUPS
from tests.controlplane.plane import ControlPlane
from tests.controlplane.releases import chosen
from tests.deploy.installed import account_kubeconfig
from tests.deploy.test_rights import installed
from tests.e2e import real
from tests.e2e.objects import node, pod
from tests.e2e.schedulers import spawned
from tests.e2e.server import Server, scheduled_condition
from tests.e2e.test_pod_groups import CLAIMS, flags, gang, half_fits_then_all, initially_scheduled, member
from tests.e2e.waiting import until
from tests.examples.playing import EXAMPLES

pytestmark = [
    pytest.mark.controlplane,
    pytest.mark.skipif(chosen().minor == "1.36", reason="the kind PodGroup is alpha"),
]


@pytest.fixture(scope="module")
def grouping() -> Iterator[ControlPlane]:
    """A control plane whose API server serves pod groups."""
    with ControlPlane(gates=(POD_GROUPS, "WorkloadWithJob", "DRAWorkloadResourceClaims")) as plane:
        yield plane


@pytest.fixture
async def server(grouping: ControlPlane) -> AsyncIterator[Server]:
    async with real.real_server(grouping, bare=True) as made:
        yield made


async def test_gang_is_rejected_with_a_condition_placed_whole_and_extended(server: Server) -> None:
    await server.load(node("n1", cpu="2"))
    await Server.load(server, gang("g", 3), *(member(name, "g", requests={"cpu": "1"}) for name in ("a", "b", "c")))
    async with spawned(*flags(server)):
        told = await until(lambda: initially_scheduled(server), bool)
        assert (told["status"], told["reason"]) == ("False", "Unschedulable")
        assert "cannot be satisfied: 2 scheduled" in told["message"]
        assert await server.nodes_of() == {"a": "", "b": "", "c": ""}
        await server.load(node("n2", cpu="2"))
        await server.placed("a", "b", "c")
        placed = await until(lambda: initially_scheduled(server), lambda found: found["status"] == "True")
        assert (placed["reason"], placed["message"]) == ("Scheduled", "")
        assert placed["lastTransitionTime"] >= told["lastTransitionTime"]
        await server.load(member("d", "g", requests={"cpu": "1"}))
        await server.placed("d")
        assert await initially_scheduled(server) == placed


async def group_of_a_job(server: Server) -> str:
    """Return the name of the group that a job's controller made; empty without one."""
    groups = [one["metadata"] for one in await server.objects("PodGroup")]
    of_jobs = (one["name"] for one in groups if any(each["kind"] == "Job" for each in one.get("ownerReferences", ())))
    return next(of_jobs, "")


async def test_job_is_a_gang(server: Server) -> None:
    await server.load(node("n1", cpu="2"))
    job = yaml.safe_load((EXAMPLES / "queues" / "gang-job.yaml").read_text("utf-8"))
    await Server.load(server, job)
    async with spawned(*flags(server)):
        name = await until(lambda: group_of_a_job(server), bool)
        told = await until(lambda: initially_scheduled(server, name), bool)
        assert "cannot be satisfied: 2 scheduled" in told["message"]
        assert list((await server.nodes_of()).values()) == ["", "", ""]
        await server.load(node("n2", cpu="2"))
        await until(lambda: initially_scheduled(server, name), lambda found: found["status"] == "True")
        await until(server.nodes_of, lambda found: all(found.values()))


async def test_pods_share_the_claim_of_their_group(server: Server) -> None:
    async with spawned(*flags(server), CLAIMS):
        await half_fits_then_all(server)
        for name in "abcd":
            await server.delete("Pod", name)
        await server.delete("PodGroup", "sharing")
        await server.patch("PodGroup", "sharing", {"metadata": {"finalizers": None}})
        await until(lambda: server.objects("ResourceClaim"), lambda found: not found)


async def test_rights_of_the_service_account_suffice(server: Server, tmp_path: Path) -> None:
    assert isinstance(server, real.RealServer)
    await installed(server, "beside")
    account = await account_kubeconfig(server, tmp_path)
    _, *others = flags(server)
    await server.load(node("n1", cpu="1"))
    await Server.load(server, gang("r", 2), *(member(name, "r", requests={"cpu": "1"}) for name in ("a", "b")))
    async with spawned(f"--kubeconfig={account}", *others) as scheduler:
        await until(lambda: initially_scheduled(server, "r"), bool)
        await server.load(node("n2", cpu="1"))
        await server.placed("a", "b")
        await until(lambda: initially_scheduled(server, "r"), lambda found: found["status"] == "True")
    assert scheduler.saying("forbidden") == []


async def test_pods_of_a_group_that_no_longer_exists_wait(server: Server) -> None:
    await server.load(node("n1"))
    await Server.load(server, gang("gone", 1), member("a", "gone"))
    async with spawned(*flags(server)):
        await server.placed("a")
        await server.delete("PodGroup", "gone")  # which stays while it has pods
        await server.load(member("during", "gone"))
        await server.placed("during")
        await server.patch("PodGroup", "gone", {"metadata": {"finalizers": None}})
        await server.load(member("b", "gone"), pod("web"))
        await server.placed("web")
        assert scheduled_condition(await server.get("Pod", "b")) == {}
        await Server.load(server, gang("gone", 2))
        await server.placed("b")
