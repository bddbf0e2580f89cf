"""Rights that are missing, one by one, on a real API server: each has a line of its own that says what it costs.

The process stays up, and goes on once the rights are there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from policysched.kube.reflector import AWAITED, HELD
from policysched.model.kinds import KINDS
from policysched.model.release import RELEASES
from tests.controlplane.plane import ControlPlane
from tests.controlplane.releases import chosen
from tests.e2e.objects import Json, node, only, pod
from tests.e2e.schedulers import InProcess, in_process
from tests.e2e.server import Server
from tests.e2e.test_election import candidate, held
from tests.e2e.test_permissions import LEASES, POLICIES, SCHEDULING, rule
from tests.e2e.test_volumes_real import claim, claiming, storage_class, volume
from tests.e2e.waiting import until_true

pytestmark = pytest.mark.controlplane
ROLE = (*SCHEDULING, *POLICIES, LEASES)


def without(verb: str, *resources: str) -> list[Json]:
    """Give the role without a verb, on some resources or on all."""
    found = []
    for one in ROLE:
        for resource in one["resources"]:
            lost = not resources or resource in resources
            verbs = [each for each in one["verbs"] if each != verb or not lost]
            if verbs:
                found.append(rule(one["apiGroups"][0], resource, *verbs))
    return found


def watched() -> set[str]:
    """Name the kinds that the role lets the scheduler watch, and that the server's minor has."""
    unread = {kind.plural for kind in KINDS.values() if not kind.read_in(RELEASES[chosen().minor])}
    return {resource for one in ROLE if "watch" in one["verbs"] for resource in one["resources"]} - unread


async def said(scheduler: InProcess, user: str, verb: str, resource: str) -> str:
    """Wait for the line about a missing right, and give it; what is tried again says the same again, and no other."""
    forbidden = f'User "{user}" cannot {verb} resource "{resource}"'

    def lines_about_it() -> list[str]:
        lines = [line.replace('\\"', '"') for line in scheduler.lines if line.startswith(("WARNING", "ERROR"))]
        return [line for line in lines if forbidden in line]

    await until_true(lambda: bool(lines_about_it()))
    lines = lines_about_it()
    assert len(set(lines)) == 1, lines
    return lines[0]


async def test_each_kind_that_may_not_be_listed_is_named_with_what_waits(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path
) -> None:
    control_plane.allow("listless", *without("list"))
    await real_server.load(node("n1"), pod("web"))
    async with in_process(control_plane.certificate_kubeconfig(tmp_path / "c", "listless"), wait=False) as scheduler:
        for resource in sorted(watched() - {"deviceclasses", "resourceslices"}):
            line = await said(scheduler, "listless", "list", resource)
            assert line.startswith(f"WARNING {resource}: ")
            assert line.endswith(f"; {AWAITED}")
        line = await said(scheduler, "listless", "list", "deviceclasses")
        assert line.startswith("WARNING continuing without deviceclasses: ")
        assert "cannot detect other processes with the same scheduler name" in await said(
            scheduler, "listless", "list", "leases"
        )
        assert await real_server.nodes_of() == {"web": ""}
        control_plane.allow("listless", *ROLE, name="listless-now")
        await real_server.placed("web")


async def test_each_kind_that_may_not_be_watched_is_named_with_what_holds(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path
) -> None:
    control_plane.allow("blind", *without("watch"))
    await real_server.load(node("n1"), pod("web"))
    async with in_process(control_plane.certificate_kubeconfig(tmp_path / "c", "blind")) as scheduler:
        assert await real_server.placed("web") == {"web": "n1"}
        for resource in sorted(watched()):
            line = await said(scheduler, "blind", "watch", resource)
            assert line.startswith(f"WARNING {resource}: ")
            assert line.endswith(f"; {HELD}")


PRIORITY = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
FULL = (node("n1"), PRIORITY, pod("victim", requests={"cpu": "4"}, nodeName="n1"))
PREEMPTOR = pod("preemptor", requests={"cpu": "4"}, priorityClassName="high")
WAITS = storage_class("waits", "WaitForFirstConsumer")
MADE = storage_class("made", "WaitForFirstConsumer", "made.example.com")
ZONED = node("n1", labels={"topology.kubernetes.io/zone": "a"})


@pytest.mark.parametrize(
    ("right", "objects", "cost"),
    [
        ("create pods/binding", (node("n1"), pod("web")), '"Error scheduling pod; retrying" err="running Bind plugin'),
        ("patch pods/status", (pod("web"),), 'could not write the status of pod "default/web": '),
        ("delete pods", (*FULL, PREEMPTOR), 'could not evict victim "default/victim" for pod "default/preemptor": '),
        ("create events", (pod("web"),), "the API server refuses events (logged once per reason): "),
        ("patch schedulingpolicies/status", (only("a", "n1"),), 'could not write the status of policy "a": '),
        ("patch schedulingpolicies", (only("a", "n1"),), "cannot store the generation in force; a restart may lose it"),
        (
            "patch persistentvolumes",
            (ZONED, WAITS, volume("v", "waits", "a"), claim("c", "waits"), claiming("web", "c")),
            '"Error scheduling pod; retrying" err="running PreBind plugin "VolumeBinding"',
        ),
        (
            "patch persistentvolumeclaims",
            (ZONED, MADE, claim("c", "made"), claiming("web", "c")),
            '"Error scheduling pod; retrying" err="running PreBind plugin "VolumeBinding"',
        ),
    ],
)
async def test_write_that_is_forbidden_is_named_with_what_it_costs(
    real_server: Server,
    control_plane: ControlPlane,
    tmp_path: Path,
    right: str,
    objects: tuple[Json, ...],
    cost: str,
) -> None:
    verb, resource = right.split()
    user = f"no-{verb}-{resource.replace('/', '-')}"
    control_plane.allow(user, *without(verb, resource))
    await real_server.load(*objects)
    async with in_process(control_plane.certificate_kubeconfig(tmp_path / "c", user)) as scheduler:
        assert cost in await said(scheduler, user, verb, resource)


@pytest.mark.parametrize("verb", ["get", "create", "update"])
async def test_lease_that_may_not_be_had_is_named_with_what_waits(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path, verb: str
) -> None:
    user = f"no-{verb}-lease"
    control_plane.allow(user, *without(verb, "leases"))
    if verb == "update":
        await held(real_server, user, "", 1)
    await real_server.load(node("n1"), pod("web"))
    config = control_plane.certificate_kubeconfig(tmp_path / "c", user)
    async with candidate(config, user, wait=False) as scheduler:
        about = f"lease default/{user} cannot be read or written, retrying: "
        await scheduler.said(about)
        [line] = scheduler.saying(about)
        assert f'User "{user}" cannot {verb} resource "leases"' in line.replace('\\"', '"')
        assert "; this process schedules nothing until it holds the lease" in line
        assert await real_server.nodes_of() == {"web": ""}
        control_plane.allow(user, *ROLE, name=f"{user}-now")
        assert await real_server.placed("web") == {"web": "n1"}
        await scheduler.said(f"lease default/{user} can be read and written again")
