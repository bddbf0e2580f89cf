"""Several schedulers and one lease: one acts, the others stand by, and take over when it ends, however it does."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policysched.kube.election import presence
from policysched.sandbox import Sandbox
from tests.controlplane.plane import ControlPlane
from tests.e2e.conftest import Running
from tests.e2e.objects import NAME, Json, node, only, pod
from tests.e2e.schedulers import COMMAND, Spawned, spawned
from tests.e2e.server import Server
from tests.e2e.test_permissions import LEASES as LEASE_RIGHTS
from tests.e2e.test_permissions import POLICIES, SCHEDULING
from tests.e2e.test_survival import all_are_bound, bound_so_far, full_house
from tests.e2e.waiting import until, until_true

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
SHORT = ("--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=500ms")
"""Durations with which tests take less time."""


@contextlib.asynccontextmanager
async def candidate(kubeconfig: Path, lease: str, *arguments: str, wait: bool = True) -> AsyncIterator[Spawned]:
    """Run a scheduler as a process that competes for a lease; who does not wait has one that may stand by."""
    named = (f"--leader-elect-resource-name={lease}", "--leader-elect-resource-namespace=default")
    stated = {one.partition("=")[0] for one in arguments}
    short = [one for one in SHORT if one.partition("=")[0] not in stated]
    async with spawned(f"--kubeconfig={kubeconfig}", *named, *short, *arguments, wait=wait) as made:
        yield made


async def lease_of(server: Server, name: str) -> Json:
    """Read the spec of a lease."""
    spec: Json = (await server.call("GET", f"{LEASES}/{name}"))["spec"]
    return spec


async def held(server: Server, name: str, holder: str, seconds: int = 3600) -> None:
    """Have somebody else hold a lease."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now, "acquireTime": now}
    metadata = {"name": name, "namespace": "default", "labels": {"kept": "yes"}}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    await server.call("POST", LEASES, body)


async def test_standby_takes_over_when_the_leader_is_killed_in_the_middle(server: Server) -> None:
    nodes, pods = full_house(10)
    await server.load(*nodes)
    async with candidate(server.kubeconfig, "killed") as leader:
        holder = (await lease_of(server, "killed"))["holderIdentity"]
        async with candidate(server.kubeconfig, "killed", wait=False) as standby:
            await standby.said(f"lease default/killed is held by {holder}; waiting for it")
            loading = asyncio.create_task(server.load(*pods))
            await until(lambda: bound_so_far(server), lambda count: count >= 20)
            await leader.end(signal.SIGKILL)
            await loading
            await all_are_bound(server, 10)  # perhaps the leader had bound all of them just before its end
            lease = await until(lambda: lease_of(server, "killed"), lambda one: one["holderIdentity"] != holder)
            assert lease["leaseTransitions"] == 1
            assert not standby.saying("WARNING")


async def test_standby_takes_over_at_once_when_the_leader_is_told_to_end(server: Server) -> None:
    await server.load(node("n1"))
    async with (
        candidate(server.kubeconfig, "released", "--leader-elect-lease-duration=1h") as leader,
        candidate(server.kubeconfig, "released", wait=False) as standby,
    ):
        await standby.said("waiting for it")
        assert await leader.end() == 0
        assert leader.saying("lease default/released is released")
        await server.load(pod("web"))
        await server.placed("web")
        notes = [
            (one["regarding"]["kind"], one["reason"], one["note"].partition(" ")[2])
            for one in await server.objects("Event")
            if one["regarding"]["name"] == "released"
        ]
        assert sorted(notes) == [
            ("Lease", "LeaderElection", "became leader"),
            ("Lease", "LeaderElection", "became leader"),
            ("Lease", "LeaderElection", "stopped leading"),
        ]
    found = await lease_of(server, "released")
    assert (found.get("holderIdentity", ""), found["leaseDurationSeconds"]) == ("", 1)


async def test_standby_knows_everything_and_writes_nothing(server: Server, sandbox: Sandbox) -> None:
    await held(server, "taken", "somebody")
    await server.load(node("n1"), node("n2"), only("pin", "n2"), pod("web"), pod("big", requests={"cpu": "9"}))
    async with candidate(server.kubeconfig, "taken", wait=False) as standby:
        await standby.said("lease default/taken is held by somebody; waiting for it")
        await server.patch("SchedulingPolicy", "pin", {"spec": only("pin", "n1")["spec"]})
        await standby.said('policy "pin" generation 2 is in force')
        assert await server.nodes_of() == {"web": "", "big": ""}
        assert (await server.get("SchedulingPolicy", "pin"))["status"] == {"observedGeneration": -1}
        assert not [one for one in await server.objects("Event") if one["regarding"]["kind"] != "Node"]
        patch = {"spec": {"holderIdentity": ""}}
        await server.call("PATCH", f"{LEASES}/taken", patch, "application/merge-patch+json")
        assert await server.placed("web") == {"web": "n1"}
        await server.policy_says("pin", 2, Active="Enforce")
        metadata = (await server.call("GET", f"{LEASES}/taken"))["metadata"]
        assert metadata["labels"] == {"kept": "yes"}


async def test_leader_ends_when_somebody_else_has_the_lease(server: Server, sandbox: Sandbox) -> None:
    async with candidate(server.kubeconfig, "stolen") as leader:
        patch = {"spec": {"holderIdentity": "thief"}}
        await server.call("PATCH", f"{LEASES}/stolen", patch, "application/merge-patch+json")
        assert await leader.exit_code() == 1
        assert leader.saying("leaderelection lost: lease default/stolen is held by thief")
    assert (await lease_of(server, "stolen"))["holderIdentity"] == "thief"


async def test_leader_that_loses_the_lease_waits_for_no_binding(server: Server, sandbox: Sandbox) -> None:
    sandbox.faults.delay("POST", "/binding", 60)
    await server.load(node("n1"), pod("web"))
    async with candidate(server.kubeconfig, "stolen") as leader:
        await until_true(lambda: sandbox.faults.seen == 1)
        patch = {"spec": {"holderIdentity": "thief"}}
        await server.call("PATCH", f"{LEASES}/stolen", patch, "application/merge-patch+json")
        assert await leader.exit_code() == 1
        assert leader.saying("stopped before the API server answered 1 binding or status request(s)")


async def test_leader_ends_when_the_server_is_away_for_too_long(server: Server, sandbox: Sandbox) -> None:
    async with candidate(server.kubeconfig, "away") as leader:
        await sandbox.stop()
        assert await leader.exit_code() == 1
        assert leader.saying("leaderelection lost: lease default/away was not renewed within 4 s: ")
        assert leader.lines[-1].startswith("error: leaderelection lost: ")


@pytest.mark.controlplane
async def test_leader_ends_when_a_real_api_server_is_away_for_too_long_and_the_next_one_binds_its_pods(
    real_server: Server, control_plane: ControlPlane
) -> None:
    nodes, pods = full_house(2)
    await real_server.load(*nodes, *pods[:20])
    async with candidate(real_server.kubeconfig, "long") as leader:
        await until(lambda: bound_so_far(real_server), bool)
        await asyncio.to_thread(control_plane.stop_apiserver, signal.SIGKILL)
        assert await leader.exit_code() == 1
        assert leader.saying("leaderelection lost: lease default/long was not renewed within 4 s: ")
        await asyncio.to_thread(control_plane.start_apiserver)
    await real_server.load(*pods[20:])
    async with candidate(real_server.kubeconfig, "long"):
        await all_are_bound(real_server, 2)


@pytest.mark.controlplane
async def test_leader_outlives_an_api_server_that_is_away_for_less(
    real_server: Server, control_plane: ControlPlane
) -> None:
    await real_server.load(node("n1"))
    patient = ("--leader-elect-renew-deadline=55s", "--leader-elect-lease-duration=60s")
    async with candidate(real_server.kubeconfig, "brief", *patient) as leader:
        await asyncio.to_thread(control_plane.stop_apiserver, signal.SIGKILL)
        await leader.said("lease default/brief cannot be read or written, retrying: ")
        await asyncio.to_thread(control_plane.start_apiserver)
        await leader.said("lease default/brief can be read and written again")
        await real_server.load(pod("web"))
        await real_server.placed("web")


@pytest.mark.controlplane
async def test_candidate_without_rights_on_leases_says_so_and_waits(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path
) -> None:
    control_plane.allow("scheduler", *SCHEDULING, *POLICIES)
    await real_server.load(node("n1"), pod("web"))
    config = control_plane.token_kubeconfig(tmp_path / "config", "scheduler")
    async with candidate(config, "forbidden", wait=False) as scheduler:
        await scheduler.said('User "scheduler" cannot get resource "leases" in API group "coordination.k8s.io"')
        assert await real_server.nodes_of() == {"web": ""}
        control_plane.allow("scheduler", LEASE_RIGHTS, name="leases")
        await real_server.placed("web")
        assert len(scheduler.saying('cannot get resource "leases"')) == 1


async def test_cache_is_filled_after_the_election_where_the_configuration_says_so(
    server: Server, sandbox: Sandbox, tmp_path: Path
) -> None:
    await held(server, "late", "somebody")
    await server.load(node("n1"), only("pin", "n1"))
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"delayCacheUntilActive: true\nprofiles: [{{schedulerName: {NAME}}}]\n"
        f"clientConnection: {{kubeconfig: {server.kubeconfig}}}\n"
        "leaderElection: {resourceName: late, resourceNamespace: default, retryPeriod: 500ms}\n"
    )
    async with spawned(f"--config={file}", "--v=2", wait=False) as standby:
        await standby.said("waiting for it")
        assert not standby.saying("listed")
        patch = {"spec": {"holderIdentity": ""}}
        await server.call("PATCH", f"{LEASES}/late", patch, "application/merge-patch+json")
        await server.load(pod("web"))
        await server.placed("web")


async def test_flag_counts_before_the_file(server: Server, sandbox: Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"clientConnection: {{kubeconfig: {server.kubeconfig}}}\n"
        "leaderElection: {leaderElect: false, resourceName: of-the-file, resourceNamespace: default}\n"
    )
    named = ("--leader-elect", "--leader-elect-resource-name=of-the-flag", "--v=2")
    async with spawned(f"--config={file}", *named) as scheduler:
        assert (await lease_of(server, "of-the-flag"))["leaseDurationSeconds"] == 15
        assert scheduler.saying("resourceName: of-the-flag")


async def test_processes_without_an_election_see_each_other(
    server: Server, sandbox: Sandbox, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "EVERY", 0.1)
    async with running("a", "b") as one:
        async with running("b"):
            # Both log into the same place, each about the other.
            await until_true(lambda: len(set(one.saying("schedules for the same scheduler name"))) == 2)
        await one.said("no longer competes with this process")
    assert len(one.saying("schedules for the same scheduler name")) == 2


async def test_durations_that_cannot_work_are_refused_before_anything_runs(server: Server, sandbox: Sandbox) -> None:
    async def refused(*arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            str(COMMAND), "run", f"--kubeconfig={server.kubeconfig}", *arguments, stderr=asyncio.subprocess.PIPE
        )
        _, said = await process.communicate()
        assert process.returncode == 2
        return said.decode().splitlines()[-1]

    assert await refused("--leader-elect-renew-deadline=20s") == (
        "error: leaderElection.leaseDuration: 15s is not greater than renewDeadline 20s"
    )
    assert await refused("--leader-elect-retry-period=9s") == (
        "error: leaderElection: renewDeadline must be greater than retryPeriod*JitterFactor"
    )
