"""The requests that write resource claims."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from policysched.framework import ApiError
from policysched.kube.claim_client import KubeClaimClient
from policysched.kube.transport import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Body
from policysched.model.objects import PodExtendedClaimStatus
from tests.build import pod
from tests.plugins.dynamic_resources.objects import allocated, claim, user

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
VERSION = {"uid": "uid-c", "resourceVersion": "1"}
P = pod()


class Sent:
    """A transport that records requests and returns the same answer to each."""

    def __init__(self, answer: bytes = msgspec.json.encode(claim())) -> None:
        self.answer = answer
        self.requests: list[tuple[str, str, Any, str]] = []
        self.client = KubeClaimClient(self)

    async def __call__(self, method: str, path: str, body: Body = None, content_type: str = JSON) -> bytes:
        assert not callable(body)
        self.requests.append((method, path, None if body is None else json.loads(body), content_type))
        return self.answer


async def test_a_claim_is_read_and_deleted() -> None:
    sent = Sent()
    assert await sent.client.get(claim()) == claim()
    await sent.client.delete(claim())
    assert [each[:2] for each in sent.requests] == [("GET", f"{CLAIMS}/c"), ("DELETE", f"{CLAIMS}/c")]


async def test_writes_hold_what_changes_and_the_version() -> None:
    sent, held = Sent(), allocated(claim(), "n1", "d1", users=[P])
    await sent.client.set_finalizers(held)
    await sent.client.allocate(held)
    await sent.client.reserve(held)
    await sent.client.deallocate(held)
    users = [json.loads(msgspec.json.encode(user(P)))]
    assert held.status.allocation is not None
    got = json.loads(msgspec.json.encode(held.status.allocation))
    empty = {"reservedFor": None, "allocation": None, "devices": None}
    status = f"{CLAIMS}/c/status"
    patch = [
        {"op": "replace", "path": "/metadata/uid", "value": VERSION["uid"]},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": VERSION["resourceVersion"]},
        {"op": "add", "path": "/status", "value": {"reservedFor": users, "allocation": got}},
    ]
    assert sent.requests == [
        ("PATCH", f"{CLAIMS}/c", {"metadata": VERSION | {"finalizers": None}}, MERGE_PATCH),
        ("PATCH", status, patch, JSON_PATCH),
        ("PATCH", status, {"metadata": VERSION, "status": {"reservedFor": users}}, MERGE_PATCH),
        ("PATCH", status, {"metadata": VERSION, "status": empty}, MERGE_PATCH),
    ]


async def test_a_special_claim_is_made_without_what_only_the_server_says() -> None:
    sent = Sent()
    await sent.client.create(claim("<extended-resources>", owner=P))
    [(method, path, body, _)] = sent.requests
    assert (method, path) == ("POST", CLAIMS)
    assert set(body) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(body["metadata"]) == {"namespace", "ownerReferences"}
    assert body["spec"]["devices"]["requests"] == [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]


async def test_a_pod_is_told_its_special_claim() -> None:
    sent = Sent()
    await sent.client.write_extended_claim_status(P, PodExtendedClaimStatus(resource_claim_name="c"))
    [(method, path, body, content_type)] = sent.requests
    assert (method, path, content_type) == ("PATCH", "/api/v1/namespaces/default/pods/p/status", STRATEGIC_PATCH)
    told = {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}
    assert body == {"metadata": {"uid": P.metadata.uid}, "status": told}


async def test_an_answer_that_is_no_claim_is_an_error() -> None:
    with pytest.raises(ApiError, match="the answer is not a ResourceClaim"):
        await Sent(b"[]").client.get(claim())
