from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from policysched.framework import ApiError, Client, Event, PodStatusChange
from policysched.kube.client import AT_ONCE, CONDITIONS_AT_ONCE, DELETIONS_AT_ONCE, STATUSES_AT_ONCE, KubeClient
from policysched.kube.connection import CONNECTIONS
from policysched.kube.events.bodies import EventContent, event_name
from policysched.kube.listing import read_list
from policysched.kube.request_limits import RateLimit
from policysched.kube.transport import REPEATS, Transport
from policysched.model.kinds import POLICIES
from policysched.model.objects import Metadata, PersistentVolume, PersistentVolumeClaim
from policysched.model.objects.storage import BOUND_BY_CONTROLLER, ObjectReference, PersistentVolumeSpec
from policysched.model.policy import Policy, PolicyKey
from tests.groups import group
from tests.kube.fake_server import Answer, Kube, answer, eventually, hang, refuse, reset
from tests.kube.reflecting import NODE_PATH
from tests.kube.writing import (
    AT,
    BINDING,
    CONDITION,
    OK,
    POD,
    POD_STATUS,
    POLICY_STATUS,
    client,
    failed,
    writer,
    writing,
)


async def test_binding_names_node_and_uid(kube: Kube) -> None:
    kube.server.on("POST", BINDING, OK)
    tested: Client = client(kube)
    await tested.bind(POD, "n1")
    assert kube.server.bodies("POST") == [
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "web", "namespace": "d", "uid": "u-1"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        }
    ]


@pytest.mark.parametrize(
    ("given", "code"),
    [(refuse(409, "Conflict"), 409), (refuse(429, "TooManyRequests"), 429), (refuse(500, "X"), 500), (reset, 0)],
)
async def test_binding_is_sent_once(kube: Kube, given: Answer, code: int) -> None:
    kube.server.on("POST", BINDING, given, OK)
    with pytest.raises(ApiError) as caught:
        await client(kube).bind(POD, "n1")
    assert caught.value.status == code
    assert len(kube.server.asked) == 1


@pytest.mark.parametrize("code", [429, 503])
async def test_binding_is_repeated_as_the_server_asks(kube: Kube, code: int) -> None:
    kube.server.on("POST", BINDING, *[refuse(code, "X", Retry_After="3")] * REPEATS, OK)
    await client(kube).bind(POD, "n1")
    assert kube.pauses.lengths == [3.0] * REPEATS


async def test_binding_is_given_up_after_many_repeats(kube: Kube) -> None:
    kube.server.on("POST", BINDING, *[refuse(429, "X", Retry_After="1")] * (REPEATS + 1), OK)
    with pytest.raises(ApiError) as caught:
        await client(kube).bind(POD, "n1")
    assert (caught.value.status, len(kube.server.asked)) == (429, REPEATS + 1)


async def test_conflict_is_not_repeated_whatever_it_asks_for(kube: Kube) -> None:
    kube.server.on("POST", BINDING, refuse(409, "Conflict", Retry_After="1"), OK)
    with pytest.raises(ApiError):
        await client(kube).bind(POD, "n1")
    assert len(kube.server.asked) == 1


async def test_condition_is_patched_alone_for_this_pod_only(kube: Kube) -> None:
    kube.server.on("PATCH", POD_STATUS, OK)
    await client(kube).set_pod_status(POD, PodStatusChange(CONDITION))
    assert kube.server.bodies("PATCH") == [{"metadata": {"uid": "u-1"}, "status": {"conditions": [CONDITION]}}]
    assert kube.server.asked[0].headers["Content-Type"] == "application/strategic-merge-patch+json"


async def test_policy_status_is_patched_against_its_version(kube: Kube) -> None:
    kube.server.on("PATCH", POLICY_STATUS, OK)
    await client(kube).set_policy_status(PolicyKey("pin"), "77", {"activeGeneration": 2})
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": "77"}
    status = {"op": "add", "path": "/status", "value": {"activeGeneration": 2}}
    assert kube.server.bodies("PATCH") == [[version, status]]
    assert kube.server.asked[0].headers["Content-Type"] == "application/json-patch+json"


POLICY = "/apis/policysched.io/v1beta1/schedulingpolicies/pin"
TESTS = [
    {"op": "test", "path": "/metadata/uid", "value": "u-2"},
    {"op": "test", "path": "/metadata/generation", "value": 3},
]


def pinned(**annotations: str) -> Policy:
    return Policy(metadata=Metadata(name="pin", uid="u-2", resource_version="7", generation=3, annotations=annotations))


@pytest.mark.parametrize(
    ("given", "added"),
    [
        (pinned(theirs="x"), [{"op": "add", "path": "/metadata/annotations/a~1b~0", "value": "new"}]),
        (
            pinned(),
            [
                {"op": "test", "path": "/metadata/annotations", "value": None},
                {"op": "add", "path": "/metadata/annotations", "value": {"a/b~": "new"}},
            ],
        ),
    ],
)
async def test_annotation_of_a_policy_goes_beside_writes_of_others(
    kube: Kube, given: Policy, added: list[dict[str, Any]]
) -> None:
    kube.server.on("PATCH", POLICY, refuse(409, "Conflict"), answer({"metadata": {"resourceVersion": "9"}}))
    assert await client(kube).annotate_policy(given, {"a/b~": "new"}) == ""
    merge, patch = kube.server.bodies("PATCH")
    assert merge == {"metadata": {"resourceVersion": "7", "annotations": {"a/b~": "new"}}}
    assert patch == [*TESTS, *added]


@pytest.mark.parametrize(("code", "told"), [(422, 409), (404, 404), (503, 503)])
async def test_annotation_of_a_policy_that_moved_on_is_a_conflict(kube: Kube, code: int, told: int) -> None:
    kube.server.on("PATCH", POLICY, refuse(409, "Conflict"), refuse(code, "X"))
    with pytest.raises(ApiError) as caught:
        await client(kube).annotate_policy(pinned(), {"a": "new"})
    assert caught.value.status == told


async def test_annotation_of_a_policy_that_is_refused_is_not_tried_another_way(kube: Kube) -> None:
    kube.server.on("PATCH", POLICY, refuse(422, "Invalid"))
    with pytest.raises(ApiError) as caught:
        await client(kube).annotate_policy(pinned(), {"a": "x" * 300_000})
    assert (caught.value.status, len(kube.server.asked)) == (422, 1)


OLDER = POLICIES.versions()[1].path


async def test_writes_to_a_policy_go_to_the_older_version_where_the_newest_is_not_served(kube: Kube) -> None:
    kube.server.on("PATCH", f"{OLDER}/pin/status", OK)
    await client(kube).set_policy_status(PolicyKey("pin"), "77", {})
    kube.server.on("PATCH", f"{OLDER}/pin", answer({"metadata": {"resourceVersion": "9"}}))
    assert await client(kube).annotate_policy(pinned(), {"a": "new"}) == "9"
    newest = POLICIES.path
    paths = [f"{newest}/pin/status", f"{OLDER}/pin/status", f"{newest}/pin", f"{OLDER}/pin"]
    assert [one.path for one in kube.server.asked] == paths


async def test_error_of_the_older_version_is_reported_unless_it_is_not_served_either(kube: Kube) -> None:
    with pytest.raises(ApiError, match=r"v1beta1.* not found"):
        await client(kube).set_policy_status(PolicyKey("pin"), "77", {})
    kube.server.on("PATCH", f"{OLDER}/pin/status", refuse(409, "Conflict"))
    with pytest.raises(ApiError) as caught:
        await client(kube).set_policy_status(PolicyKey("pin"), "77", {})
    assert caught.value.status == 409


@pytest.mark.parametrize(
    ("answers", "error", "pauses"),
    [
        ((refuse(429, "TooManyRequests", Retry_After="9"), OK), None, [9]),
        ((refuse(500, "InternalError"), reset, OK), None, [1, 2]),
        ((refuse(429, "TooManyRequests", Retry_After="2"),) * 5 + (OK,), None, [2] * 5),
        ((refuse(409, "Conflict"),), 409, []),
        ((refuse(404, "NotFound"),), 404, []),
        ((refuse(503, "ServiceUnavailable"),), 503, [1, 2, 4]),
    ],
)
async def test_status_writes_are_repeated_while_it_helps(
    kube: Kube, answers: tuple[Answer, ...], error: int | None, pauses: list[float]
) -> None:
    kube.server.on("PATCH", POD_STATUS, *answers)
    if error is None:
        await client(kube).set_pod_status(POD, PodStatusChange(CONDITION))
    else:
        with pytest.raises(ApiError) as caught:
            await client(kube).set_pod_status(POD, PodStatusChange(CONDITION))
        assert caught.value.status == error
    assert kube.pauses.lengths == pauses


async def test_bindings_do_not_wait_for_conditions(kube: Kube) -> None:
    kube.server.on("PATCH", POD_STATUS, hang)
    kube.server.on("POST", BINDING, OK)
    tested = client(kube)
    newest = partial(PodStatusChange, CONDITION)
    tasks = [asyncio.create_task(tested.report_pod_status(POD, newest)) for _ in range(200)]
    await eventually(lambda: len(kube.server.bodies("PATCH")) == CONDITIONS_AT_ONCE)
    await asyncio.wait_for(tested.bind(POD, "n1"), 5)
    assert len(kube.server.bodies("PATCH")) == CONDITIONS_AT_ONCE < CONNECTIONS
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_bindings_and_nominations_do_not_wait_for_evictions_and_conditions(kube: Kube) -> None:
    kube.server.on("DELETE", POD_STATUS.removesuffix("/status"), hang)
    kube.server.on("PATCH", POD_STATUS, *[hang] * CONDITIONS_AT_ONCE, OK, hang)
    kube.server.on("POST", BINDING, OK)
    tested = client(kube)
    newest = partial(PodStatusChange, CONDITION)
    tasks = [asyncio.create_task(tested.delete_pod(POD)) for _ in range(200)]
    tasks += [asyncio.create_task(tested.report_pod_status(POD, newest)) for _ in range(200)]
    await eventually(lambda: len(kube.server.bodies("DELETE")) == DELETIONS_AT_ONCE)
    await eventually(lambda: len(kube.server.bodies("PATCH")) == CONDITIONS_AT_ONCE)
    await asyncio.wait_for(tested.set_pod_status(POD, PodStatusChange(nominated_node="n1")), 5)
    tasks += [asyncio.create_task(tested.set_pod_status(POD, PodStatusChange(CONDITION))) for _ in range(200)]
    await eventually(lambda: len(kube.server.bodies("PATCH")) == CONDITIONS_AT_ONCE + 1 + STATUSES_AT_ONCE)
    await asyncio.wait_for(tested.bind(POD, "n1"), 5)
    assert DELETIONS_AT_ONCE + STATUSES_AT_ONCE + CONDITIONS_AT_ONCE < AT_ONCE
    assert len(kube.server.bodies("DELETE")) == DELETIONS_AT_ONCE
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_statuses_that_wait_for_the_limit_are_sent_behind_bindings_and_evictions_as_they_are_then(
    kube: Kube,
) -> None:
    limit = RateLimit(0.001, 2)
    transport = Transport(kube.connection, limit=limit)
    tested = KubeClient(transport, writer(kube), kube.pauses.pacing)
    kube.server.on("PATCH", POD_STATUS, OK, OK)
    kube.server.on("POST", BINDING, OK)
    message = "old"

    def newest() -> PodStatusChange:
        return PodStatusChange({"type": "PodScheduled", "message": message})

    def give(tokens: int) -> None:
        limit._tokens, limit._filled_at = float(tokens), asyncio.get_running_loop().time()
        limit._serve()

    give(0)
    reporting = asyncio.create_task(tested.report_pod_status(POD, newest))
    await asyncio.sleep(0)
    evicting = asyncio.create_task(tested.set_pod_status(POD, PodStatusChange({"type": "DisruptionTarget"})))
    binding = asyncio.create_task(tested.bind(POD, "n1"))
    await asyncio.sleep(0)
    message = "new"
    give(2)
    await asyncio.gather(evicting, binding)
    assert not reporting.done()
    give(1)
    await reporting
    conditions = [body["status"]["conditions"][0] for body in kube.server.bodies("PATCH")]
    assert [one.get("message", one["type"]) for one in conditions] == ["DisruptionTarget", "new"]


async def test_lists_and_watches_do_not_wait_for_bindings(kube: Kube) -> None:
    kube.server.on("POST", BINDING, hang)
    kube.server.on("GET", NODE_PATH, answer({"kind": "NodeList", "metadata": {"resourceVersion": "7"}, "items": []}))
    tested = client(kube)
    tasks = [asyncio.create_task(tested.bind(POD, "n1")) for _ in range(CONNECTIONS + 1)]
    await eventually(lambda: len(kube.server.bodies("POST")) == AT_ONCE)
    assert await asyncio.wait_for(read_list(kube.transport, NODE_PATH, "Node"), 5) == ("7", [])
    assert len(kube.server.bodies("POST")) == AT_ONCE
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


IDENTITY = {"namespace": "d", "name": "web", "uid": "u-1"}


async def test_event_has_the_shape_of_kube_schedulers(kube: Kube) -> None:
    async with writing(kube) as tested:
        KubeClient(kube.transport, tested, kube.pauses.pacing).record(
            Event(POD, "Normal", "Scheduled", "Binding", "Successfully assigned d/web to n1", AT)
        )
        assert await tested.close(5) == 0
        assert tested.counts == (1, 1, 0, 0, 0)
    assert kube.server.bodies("POST") == [
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": event_name(EventContent.of(failed())), "namespace": "d"},
            "eventTime": "2026-01-02T03:04:05.678901Z",
            "reportingController": "policysched",
            "reportingInstance": "policysched-host-1",
            "action": "Binding",
            "reason": "Scheduled",
            "regarding": {"kind": "Pod", "apiVersion": "v1", "resourceVersion": "5"} | IDENTITY,
            "note": "Successfully assigned d/web to n1",
            "type": "Normal",
        }
    ]


VOLUME = PersistentVolume(
    metadata=Metadata(name="v", resource_version="7", annotations={BOUND_BY_CONTROLLER: "yes", "other": "x"}),
    spec=PersistentVolumeSpec(
        claim_ref=ObjectReference(kind="PersistentVolumeClaim", api_version="v1", namespace="d", name="data", uid="u-2")
    ),
)
CLAIM = PersistentVolumeClaim(metadata=Metadata(name="data", namespace="d", resource_version="3"))
VOLUME_PATH, CLAIM_PATH = "/api/v1/persistentvolumes/v", "/api/v1/namespaces/d/persistentvolumeclaims/data"


async def test_a_volume_is_claimed_against_its_version(kube: Kube) -> None:
    kube.server.on("PATCH", VOLUME_PATH, answer({"metadata": {"resourceVersion": "8"}}))
    assert await client(kube).claim_volume(VOLUME) == "8"
    [asked] = kube.server.asked
    assert asked.headers["Content-Type"] == "application/merge-patch+json"
    assert asked.body == {
        "metadata": {"resourceVersion": "7", "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
        "spec": {
            "claimRef": {
                "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "d", "name": "data", "uid": "u-2",
            }
        },
    }  # fmt: skip


async def test_a_claim_is_given_a_node_against_its_version(kube: Kube) -> None:
    kube.server.on("PATCH", CLAIM_PATH, answer({"metadata": {"resourceVersion": "4"}}))
    assert await client(kube).select_node(CLAIM, "n1") == "4"
    assert kube.server.bodies("PATCH") == [
        {"metadata": {"resourceVersion": "3", "annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
    ]


@pytest.mark.parametrize(
    ("given", "status"),
    [(refuse(409, "Conflict"), 409), (refuse(403, "Forbidden"), 403), (reset, 0), (answer("<html>"), 0)],
)
async def test_writes_about_volumes_are_tried_once(kube: Kube, given: Answer, status: int) -> None:
    kube.server.on("PATCH", VOLUME_PATH, given)
    with pytest.raises(ApiError) as error:
        await client(kube).claim_volume(VOLUME)
    assert (error.value.status, len(kube.server.asked)) == (status, 1)


DEEP = b'{"f":' * 20_000 + b"{}" + b"}" * 20_000


async def test_node_of_a_pod_is_read_whatever_else_its_answer_holds(kube: Kube) -> None:
    path = POD_STATUS.removesuffix("/status")
    kube.server.on("GET", path, answer(b'{"metadata":{"uid":"u-1","f":%b},"spec":{"nodeName":"n1"}}' % DEEP))
    assert await client(kube).node_of(POD) == "n1"
    kube.server.on("GET", path, answer(b'{"metadata":{"uid":"\xff"}}'))
    with pytest.raises(ApiError) as caught:
        await client(kube).node_of(POD)
    assert (caught.value.status, caught.value.reason) == (0, "Malformed")


async def test_version_of_what_was_written_is_read_whatever_else_the_answer_holds(kube: Kube) -> None:
    path = "/api/v1/namespaces/d/persistentvolumeclaims/c"
    claim = PersistentVolumeClaim(metadata=Metadata(name="c", namespace="d", resource_version="1"))
    kube.server.on("PATCH", path, answer(b'{"metadata":{"name":"c","resourceVersion":"7","f":%b}}' % DEEP))
    assert await client(kube).select_node(claim, "n1") == "7"
    kube.server.on("PATCH", path, answer(b'{"metadata":{"f":%b}}' % DEEP))
    with pytest.raises(ApiError, match="is not an object"):
        await client(kube).select_node(claim, "n1")


async def test_condition_of_a_pod_group_is_patched_alone_for_this_group_only(kube: Kube) -> None:
    path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/g/status"
    kube.server.on("PATCH", path, OK)
    condition = {"type": "PodGroupInitiallyScheduled", "status": "True"}
    await client(kube).set_pod_group_status(group(uid="u-g"), condition)
    assert kube.server.bodies("PATCH") == [{"metadata": {"uid": "u-g"}, "status": {"conditions": [condition]}}]
    assert kube.server.asked[0].headers["Content-Type"] == "application/strategic-merge-patch+json"
