from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policysched.apimachinery.errors import StatusError
from policysched.apimachinery.protobuf import MAGIC, decode

if TYPE_CHECKING:
    from tests.sandbox.conftest import Api


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def message(*pairs: tuple[int, Any]) -> bytes:
    found = b""
    for number, value in pairs:
        if isinstance(value, int):
            found += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            found += varint(number << 3 | 2) + varint(len(data)) + data
    return found


def envelope(version: str, kind: str, body: bytes) -> bytes:
    return MAGIC + message((1, message((1, version), (2, kind))), (2, body))


def test_a_pod_is_decoded_with_maps_lists_and_inline_fields() -> None:
    quantity = message((1, "500m"))
    limits = message((1, message((1, "cpu"), (2, quantity))))
    container = message((1, "c"), (2, "nginx"), (8, limits), (14, ""), (16, 0))
    volume = message((1, "v"), (2, message((1, message((1, "/x"))))))
    metadata = message((1, "web"), (11, message((1, "a"), (2, "b"))), (8, message((1, 0))), (8, b""))
    spec = message((1, volume), (2, container), (4, 0), (11, 0), (21, 0), (3, ""))
    found = decode(envelope("v1", "Pod", message((1, metadata), (2, spec), (3, b""))))
    assert found == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "labels": {"a": "b"}},
        "spec": {
            "volumes": [{"name": "v", "hostPath": {"path": "/x"}}],
            "containers": [{"name": "c", "image": "nginx", "resources": {"limits": {"cpu": "500m"}}}],
            # a pointer that is set keeps its zero, as in JSON
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        },
    }


def test_times_and_numbers_or_strings_are_decoded() -> None:
    lease = message((2, message((4, message((1, 1_700_000_000), (2, 250_000_000))))))
    found = decode(envelope("coordination.k8s.io/v1", "Lease", lease))
    assert found["spec"] == {"renewTime": "2023-11-14T22:13:20.250000Z"}
    for value, expected in ((message((1, 0), (2, -1)), -1), (message((1, 1), (3, "25%")), "25%")):
        budget = message((2, message((1, value))))
        found = decode(envelope("policy/v1", "PodDisruptionBudget", budget))
        assert found["spec"] == {"minAvailable": expected}
    secret = message((2, message((1, "k"), (2, b"\x00\x01"))))
    assert decode(envelope("v1", "Secret", secret))["data"] == {"k": "AAE="}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (envelope("batch/v1", "Job", b""), 415),
        (MAGIC + b"\x0a\x05ab", 400),
        (MAGIC, 400),
        (MAGIC + b"\x09", 400),
        (MAGIC + b"\x80", 400),
    ],
)
def test_what_cannot_be_decoded_is_refused(body: bytes, code: int) -> None:
    with pytest.raises(StatusError) as caught:
        decode(body)
    assert caught.value.code == code


async def test_protobuf_bodies_are_taken_as_json_is(quiet_api: Api) -> None:
    body = envelope("v1", "Namespace", message((1, message((1, "team")))))
    async with quiet_api.session.post(
        quiet_api.url + "/api/v1/namespaces",
        data=body,
        headers={"Content-Type": "application/vnd.kubernetes.protobuf"},
    ) as response:
        assert response.status == 201
        assert (await response.json())["status"] == {"phase": "Active"}
