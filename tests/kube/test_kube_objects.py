from __future__ import annotations

from typing import Any

import pytest

from policysched.model.kinds import DEVICE_CLASSES, PODS, POLICIES, ApiKind
from policysched.model.policy import API_VERSION, API_VERSIONS, KIND
from tests.kube.fake_server import Answer, Kube, answer, eventually, hang, refuse, stream
from tests.kube.reflecting import (
    HANG,
    NODE_PATH,
    event,
    gone,
    groups,
    heard,
    kinds,
    malformed,
    node,
    page,
    watching,
)


async def test_malformed_object_is_reported_once_a_version_and_counts_as_gone(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer(page(node("a", 1), malformed("b", 2))), answer(page(malformed("b", 2))))
    kube.server.on(
        "WATCH",
        NODE_PATH,
        stream(
            event("MODIFIED", malformed("a", 3)),
            event("MODIFIED", malformed("a", 3)),
            event("MODIFIED", malformed("a", 4)),
            event("MODIFIED", node("a", 5)),
            event("DELETED", malformed("a", 6)),
            gone(),
        ),
        HANG,
    )
    run = await heard(kube, "list", "+a@1", "-a@1", "+a@5", "-a@5", "list")
    assert run.broken == ["b@2", "a@3", "a@4"]


def nameable(name: str, version: int) -> dict[str, Any]:
    """Return a policy that has identity and version, but is otherwise malformed."""
    return {"metadata": {"name": name, "resourceVersion": str(version), "uid": f"uid-{name}", "labels": 7}}


async def test_malformed_policy_leaves_its_last_good_version_in_place(kube: Kube) -> None:
    kube.server.on(
        "GET",
        POLICIES.path,
        answer(page(node("p", 1), kind=KIND)),
        answer(page(nameable("p", 4), version=4, kind=KIND)),
    )
    kube.server.on("WATCH", POLICIES.path, stream(event("MODIFIED", nameable("p", 3)), gone()), stream(gone()), HANG)
    run = await heard(kube, "list", "+p@1", "list", "list", watched=POLICIES)
    assert run.broken == ["p@3", "p@4"]


async def test_policy_whose_spec_cannot_be_read_is_heard_of(kube: Kube) -> None:
    bad = {"spec": {"weight": 1000}}
    kube.server.on("GET", POLICIES.path, answer(page(node("p", 2) | bad, node("q", 1), kind=KIND)))
    kube.server.on("WATCH", POLICIES.path, stream(event("MODIFIED", node("q", 3) | bad)), HANG)
    run = await heard(kube, "list", "+p@2", "+q@1", "+q@3", watched=POLICIES)
    assert run.broken == []


async def test_finished_pods_are_not_there(kube: Kube) -> None:
    done = {"status": {"phase": "Succeeded"}}
    kube.server.on("GET", PODS.path, answer(page(node("a", 1), node("b", 1) | done, kind="Pod")))
    kube.server.on(
        "WATCH",
        PODS.path,
        stream(
            event("MODIFIED", node("a", 2) | done),
            event("MODIFIED", node("b", 3) | done),
            event("DELETED", node("a", 4) | done),
            then="hang",
        ),
    )
    await heard(kube, "list", "+a@1", "-a@1", watched=PODS)


@pytest.mark.parametrize(
    ("watched", "code", "tolerated"),
    [(POLICIES, 404, True), (POLICIES, 403, False), (DEVICE_CLASSES, 404, True), (DEVICE_CLASSES, 403, True)],
)
async def test_resource_that_may_be_missing_counts_as_empty(
    kube: Kube, watched: ApiKind[Any], code: int, tolerated: bool
) -> None:
    kube.server.on("GET", "/apis", answer(groups()))
    kube.server.on("GET", watched.path, refuse(code, "No", "no such thing"))
    async with watching(kube, watched) as run:
        await eventually(lambda: len(kube.pauses.lengths) >= 2)
        assert (run.reflector.absent, run.reflector.synced.is_set()) == (tolerated, tolerated)
        assert bool(run.reflector.problem) is not tolerated
    assert kube.pauses.lengths[:2] == ([5, 5] if tolerated else [1, 2])


GROUP, _, PLURAL = POLICIES.path.removeprefix("/apis/").rpartition("/")


@pytest.mark.parametrize(
    ("of_groups", "of_kinds", "installed"),
    [
        (answer(groups("apps/v1")), None, False),
        (answer(groups("apps/v1", GROUP)), answer(kinds("others")), False),
        (answer(groups(GROUP)), answer(kinds(PLURAL)), True),
        (answer(groups(GROUP)), refuse(404, "NotFound"), True),
        (refuse(404, "NotFound"), None, True),
        (refuse(403, "Forbidden"), None, True),
        (answer({"kind": "NodeList"}), None, True),
        (answer("<html>"), None, True),
    ],
)
async def test_first_404_counts_where_the_server_says_that_it_does_not_serve_the_kind(
    kube: Kube, of_groups: Answer, of_kinds: Answer | None, installed: bool
) -> None:
    kube.server.on("GET", POLICIES.path, refuse(404, "NotFound", "no such thing"))
    kube.server.on("GET", "/apis", of_groups)
    if of_kinds is not None:
        kube.server.on("GET", f"/apis/{GROUP}", of_kinds)
    async with watching(kube, POLICIES) as run:
        await eventually(lambda: len(kube.pauses.lengths) >= 2)
        assert run.reflector.synced.is_set() is not installed
        assert bool(run.reflector.problem) is installed


@pytest.mark.parametrize("code", [404, 403, 500, 429])
async def test_what_was_listed_once_holds_through_refusals(
    kube: Kube, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    kube.server.on("GET", "/apis", answer(groups()))
    kube.server.on(
        "GET",
        POLICIES.path,
        answer(page(node("p", 1), kind=KIND)),
        *(refuse(code, "No", "no such thing") for _ in range(4)),
        answer(page(node("q", 9), version=9, kind=KIND)),
    )
    kube.server.on("WATCH", POLICIES.path, refuse(404, "NotFound", "no such thing"), HANG)
    async with watching(kube, POLICIES) as run:
        await eventually(lambda: len(run.ledger.heard) == 5)
        assert "schedulingpolicies: no such thing; the objects listed before stay in use" in caplog.messages
        assert run.ledger.heard == ["list", "+p@1", "list", "-p@1", "+q@9"]
        assert (run.reflector.absent, run.reflector.problem) == (False, "")


async def test_kind_that_is_deleted_takes_its_objects_with_it_and_may_come_back(kube: Kube) -> None:
    kube.server.on(
        "GET",
        POLICIES.path,
        answer(page(node("p", 1), kind=KIND)),
        refuse(404, "NotFound", "no such thing"),
        answer(page(node("q", 9), version=9, kind=KIND)),
    )
    deleted = stream(event("DELETED", node("p", 3)))
    kube.server.on("WATCH", POLICIES.path, deleted, refuse(404, "NotFound", "no such thing"), HANG)
    run = await heard(kube, "list", "+p@1", "-p@1", "list", "list", "+q@9", watched=POLICIES)
    assert not run.reflector.absent


async def test_list_that_is_none_is_a_problem(kube: Kube) -> None:
    kube.server.on("GET", NODE_PATH, answer("<html>"), answer(page(node("a", 1))))
    kube.server.on("WATCH", NODE_PATH, hang)
    await heard(kube, "list", "+a@1")
    assert kube.pauses.lengths == [1]


ALPHA = POLICIES.versions()[1]
SERVED = f"schedulingpolicies: the API server serves {ALPHA.api_version}, not {API_VERSION}; to install the CRD: "


def of_version(version: str, obj: dict[str, Any]) -> dict[str, Any]:
    return {"kind": KIND, "apiVersion": version, **obj}


async def test_older_version_is_listed_and_watched_where_the_newest_is_not_served(
    kube: Kube, caplog: pytest.LogCaptureFixture
) -> None:
    kube.server.on("GET", "/apis", answer(groups(ALPHA.api_version)))
    kube.server.on("GET", ALPHA.path, answer(page(of_version(ALPHA.api_version, node("p", 1)), kind=KIND)))
    added = event("ADDED", of_version(ALPHA.api_version, node("q", 2)))
    kube.server.on("WATCH", ALPHA.path, stream(added, then="hang"))
    run = await heard(kube, "list", "+p@1", "+q@2", watched=POLICIES)
    assert (run.reflector.absent, run.reflector.problem, run.reflector.watched) == (False, "", POLICIES)
    assert [one.partition(SERVED)[2] for one in caplog.messages if SERVED in one] == [
        "policysched crd | kubectl apply -f -"
    ]


async def test_newest_version_is_watched_once_the_older_is_no_longer_served(
    kube: Kube, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    absent = refuse(404, "NotFound", "no such thing")
    kube.server.on("GET", POLICIES.path, absent, answer(page(of_version(API_VERSION, node("p", 2)), kind=KIND)))
    kube.server.on("GET", ALPHA.path, answer(page(of_version(ALPHA.api_version, node("p", 1)), kind=KIND)), absent)
    kube.server.on("WATCH", ALPHA.path, absent)
    kube.server.on("WATCH", POLICIES.path, HANG)
    run = await heard(kube, "list", "+p@1", "list", "+p@2", watched=POLICIES)
    assert f"schedulingpolicies: the API server serves {API_VERSION}" in caplog.messages
    assert run.reflector.problem == ""


@pytest.mark.parametrize("served", API_VERSIONS)
async def test_first_404_of_all_versions_counts_only_where_discovery_lists_none(kube: Kube, served: str) -> None:
    """As while an API server starts, which answers 404 for custom resources that it does not know yet."""
    kube.server.on("GET", "/apis", answer(groups(served)))
    kube.server.on("GET", f"/apis/{served}", answer(kinds(PLURAL)))
    async with watching(kube, POLICIES) as run:
        await eventually(lambda: len(kube.pauses.lengths) >= 2)
        assert (run.reflector.synced.is_set(), bool(run.reflector.problem)) == (False, True)
