"""Requests for the lease of the leader election, and responses that are not a Lease."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import ApiError
from policysched.kube.election.lease import MOST, LeaseLock, LeaseRecord
from policysched.kube.transport import Transport
from tests.kube.fake_server import Kube, answer

LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
LEASE = f"{LEASES}/lease"


async def test_update_keeps_what_others_wrote_and_leaves_managed_fields_to_the_server(kube: Kube) -> None:
    metadata = {"name": "lease", "resourceVersion": "7", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    found = {"metadata": metadata | {"managedFields": [{"fieldsV1": {}}]}, "spec": {"holderIdentity": "one"}}
    kube.server.on("GET", LEASE, answer(found))
    kube.server.on("PUT", LEASE, answer(found))
    lock = LeaseLock(kube.transport, "ns", "lease", 10)
    assert await lock.get() == LeaseRecord("one")
    await lock.update(LeaseRecord("two", 15))
    body = kube.server.asked[-1].body
    assert body["metadata"] == metadata
    assert (body["spec"]["holderIdentity"], body["spec"]["leaseDurationSeconds"]) == ("two", 15)


@pytest.mark.parametrize(
    "found",
    [
        b"[" * 100_000,
        {"metadata": [], "spec": {}},
        {"spec": {}},
        {"metadata": {}, "spec": [1]},
        {"metadata": {}, "spec": {"leaseDurationSeconds": "15"}},
        {"metadata": {}, "spec": {"leaseDurationSeconds": 10**400}},
        {"metadata": {}, "spec": {"leaseDurationSeconds": MOST + 1}},
        {"metadata": {}, "spec": {"leaseTransitions": -MOST - 2}},
    ],
)
async def test_what_is_no_lease_is_an_error_of_the_request(kube: Kube, found: Any) -> None:
    kube.server.on("GET", LEASE, answer(found))
    with pytest.raises(ApiError, match="the answer for lease ns/lease is not a Lease"):
        await LeaseLock(kube.transport, "ns", "lease", 10).get()


class Echo(Transport):
    """A server that returns a deeply nested Lease."""

    def __init__(self, lease: bytes) -> None:
        self.lease = lease

    async def request(self, *_: Any, **__: Any) -> bytes:
        return self.lease


async def test_lease_of_any_depth_can_be_written_back_or_is_an_error_of_the_request() -> None:
    found = set()
    for depth in range(800, 1000):
        deep = b'{"metadata":{"annotations":' + b'{"a":' * depth + b"1" + b"}" * depth + b'},"spec":{}}'
        lock = LeaseLock(Echo(deep), "ns", "lease", 10)
        try:
            await lock.get()
            await lock.update(LeaseRecord("me"))
            found.add("written")
        except ApiError as error:
            found.add(error.reason)
    assert "written" in found and found <= {"written", "Malformed"}
