"""Others who act at the same time: they bind, delete and change what the scheduler is about to use."""

from __future__ import annotations

from policysched.sandbox import Sandbox
from tests.e2e.objects import Json, node, pod, unfit
from tests.e2e.schedulers import InProcess
from tests.e2e.server import Server, scheduled_condition
from tests.e2e.waiting import until, until_true

BINDING = "/binding"
FULL = {"cpu": "4"}


async def begin_to_bind_web(server: Server, sandbox: Sandbox, *nodes: Json) -> None:
    """Load the nodes and a pod, and wait until the pod's binding has been sent and is held up."""
    await server.load(*nodes)
    sandbox.faults.delay("POST", BINDING, 1)
    await server.load(pod("web", requests=FULL))
    await until_true(lambda: sandbox.faults.seen == 1)


async def test_pod_that_another_client_binds_first_stays_there(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    await begin_to_bind_web(server, sandbox, node("n1"), node("n2", labels={"theirs": "yes"}))
    theirs = "n1" if scheduler.saying('"Attempting to bind pod to node" pod="default/web" node="n2"') else "n2"
    await server.bind("web", theirs)
    await scheduler.said('pod "default/web" was bound by another client')
    await server.load(pod("next", requests=FULL))
    assert await server.placed("web", "next") == {"web": theirs, "next": {"n1": "n2", "n2": "n1"}[theirs]}
    await server.load(pod("late", requests=FULL))
    await server.turned_away("late", unfit(2, "2 Insufficient cpu"))
    assert scheduled_condition(await server.get("Pod", "web"))["status"] == "True"
    assert [one for one in await server.events("web") if one["reason"] == "FailedScheduling"] == []


async def test_conflict_that_was_none_is_tried_again(server: Server, sandbox: Sandbox, scheduler: InProcess) -> None:
    await server.load(node("n1"))
    sandbox.faults.fail("POST", BINDING, 409, times=2, message="try again")
    await server.load(pod("web", requests=FULL))
    assert await server.placed("web") == {"web": "n1"}


async def test_binding_that_fails_is_told_and_tried_again(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    await server.load(node("n1"))
    sandbox.faults.fail("POST", BINDING, 500, message="etcd is away")
    await server.load(pod("web", requests=FULL))
    note = 'running Bind plugin "DefaultBinder": etcd is away'
    condition = await server.turned_away("web", note)
    assert (condition["reason"], condition["status"]) == ("SchedulerError", "False")
    await server.placed("web")
    await until(lambda: server.get("Pod", "web"), lambda obj: scheduled_condition(obj).get("status") == "True")


async def test_resources_are_free_while_a_failed_binding_waits(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    await server.load(node("n1"))
    sandbox.faults.fail("POST", "/pods/first/binding", 500, times=None)
    await server.load(pod("first", requests=FULL))
    await scheduler.said('"Error scheduling pod; retrying" err=')
    await server.load(pod("second", requests=FULL))
    assert await server.placed("second") == {"second": "n1"}
    await server.turned_away("first", unfit(1, "1 Insufficient cpu"))


async def test_pod_deleted_while_it_is_bound_gives_its_place_back(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    await begin_to_bind_web(server, sandbox, node("n1"))
    await server.delete("Pod", "web")
    await server.load(pod("next", requests=FULL))
    assert await server.placed("next") == {"next": "n1"}
    await scheduler.said('pod "default/web" is deleted; its binding is dropped')
    assert not scheduler.saying("Error scheduling pod"), scheduler.lines


async def test_pod_made_anew_while_it_is_bound_is_bound_itself(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    await begin_to_bind_web(server, sandbox, node("n1"), node("n2"))
    await server.delete("Pod", "web")
    await server.load(pod("web", requests=FULL), pod("other", requests=FULL))
    nodes = await server.placed("web", "other")
    assert set(nodes.values()) == {"n1", "n2"}
    await server.load(pod("late", requests=FULL))
    await server.turned_away("late", unfit(2, "2 Insufficient cpu"))


async def test_node_deleted_while_a_pod_is_bound_to_it_does_no_harm(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    await begin_to_bind_web(server, sandbox, node("n1"))
    await server.delete("Node", "n1")
    await server.load(pod("next", requests=FULL))
    await server.turned_away("next", "no nodes available to schedule pods")
    await server.load(node("n2"))
    assert await server.placed("web", "next") == {"web": "n1", "next": "n2"}


async def test_condition_written_late_does_not_hide_that_a_pod_is_bound(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    await server.load(node("n1"))
    sandbox.faults.fail("PATCH", "/pods/web/status", 500)
    await server.load(pod("web", requests={"cpu": "8"}))
    await until_true(lambda: sandbox.faults.seen == 1)
    await server.load(node("n2", cpu="8"))
    await server.placed("web")
    await server.load(pod("marker", requests={"cpu": "8"}))
    await server.turned_away("marker", unfit(2, "2 Insufficient cpu", hopeless=1))
    await scheduler.stop()
    assert scheduled_condition(await server.get("Pod", "web"))["status"] == "True"
