"""Reads and writes of resource claims on the API server: `KubeClaimClient`.

Writes are patches of the changed fields only, so fields that this process does not know stay as they are. Where it
matters, a patch requires the claim's resourceVersion. Each patch is sent once; on a conflict the caller repeats it.

Source: plugins/dynamicresources/dynamicresources.go, extendeddynamicresources.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Awaitable
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from policysched.framework import ApiError
from policysched.kube.transport import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Body
from policysched.model.decode import ObjectError
from policysched.model.kinds import RESOURCE_CLAIMS
from policysched.model.objects import Pod, PodExtendedClaimStatus, ResourceClaim

_ENCODER: Final = msgspec.json.Encoder()
_VERSION: Final = "resource.k8s.io/v1"


class SendRequest(Protocol):
    """Function that sends a request to the API server when request limits permit, and returns the answer."""

    def __call__(self, method: str, path: str, body: Body = None, content_type: str = JSON) -> Awaitable[bytes]:
        """Send a request and return the body of its answer.

        Raises:
            ApiError: the server rejected the request.
        """


class KubeClaimClient:
    """The framework's `ClaimClient` for a real API server.

    Args:
        send: Sends a request.
    """

    def __init__(self, send: SendRequest) -> None:
        self._send = send

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        """Read the newest version of a claim."""
        return _claim(await self._send("GET", _path(claim)))

    async def set_finalizers(self, claim: ResourceClaim) -> ResourceClaim:
        """Write a claim's finalizers; fails with a conflict if the claim's resourceVersion changed."""
        body = {"metadata": _versioned(claim) | {"finalizers": claim.metadata.finalizers or None}}
        return _claim(await self._send("PATCH", _path(claim), _ENCODER.encode(body), MERGE_PATCH))

    async def allocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Write a claim's allocation and reservedFor; fails with a conflict if the resourceVersion changed.

        A merge patch would remove null values from the drivers' opaque configuration, so this is a JSON patch.
        """
        of = claim.metadata
        status = {"reservedFor": claim.status.reserved_for, "allocation": claim.status.allocation}
        expected = (("/metadata/uid", of.uid), ("/metadata/resourceVersion", of.resource_version))
        patch: list[Any] = [{"op": "replace", "path": path, "value": value} for path, value in expected]
        body = _ENCODER.encode([*patch, {"op": "add", "path": "/status", "value": status}])
        return _claim(await self._send("PATCH", f"{_path(claim)}/status", body, JSON_PATCH))

    async def reserve(self, claim: ResourceClaim) -> ResourceClaim:
        """Write a claim's reservedFor; fails with a conflict if the resourceVersion changed."""
        return await self._set_status(claim, {"reservedFor": claim.status.reserved_for})

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Clear reservedFor, allocation and devices of a claim; conflicts if the resourceVersion changed."""
        return await self._set_status(claim, dict.fromkeys(("reservedFor", "allocation", "devices")))

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim from its spec; the server completes the claim's generateName."""
        of = claim.metadata
        metadata = replace(of, name="", uid="", resource_version="", finalizers=())
        body = {"apiVersion": _VERSION, "kind": "ResourceClaim", "metadata": metadata, "spec": claim.spec}
        path = f"/apis/{_VERSION}/namespaces/{of.namespace}/resourceclaims"
        return _claim(await self._send("POST", path, _ENCODER.encode(body)))

    async def _set_status(self, claim: ResourceClaim, status: dict[str, Any]) -> ResourceClaim:
        body = _ENCODER.encode({"metadata": _versioned(claim), "status": status})
        return _claim(await self._send("PATCH", f"{_path(claim)}/status", body, MERGE_PATCH))

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete the claim with this UID; a claim that was recreated under the same name stays.

        Raises:
            ApiError: the server rejected the request; status 404 if no claim of this UID exists.
        """
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": claim.metadata.uid}}
        try:
            await self._send("DELETE", _path(claim), _ENCODER.encode(options))
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            raise ApiError(HTTPStatus.NOT_FOUND, "NotFound", f'ResourceClaim "{claim.key}" was recreated') from error

    async def write_extended_claim_status(self, pod: Pod, status: PodExtendedClaimStatus) -> None:
        """Write into a pod's status the name of the claim that holds its extended resources."""
        of = pod.metadata
        body = {"metadata": {"uid": of.uid}, "status": {"extendedResourceClaimStatus": status}}
        path = f"/api/v1/namespaces/{of.namespace}/pods/{of.name}/status"
        await self._send("PATCH", path, _ENCODER.encode(body), STRATEGIC_PATCH)


def _path(claim: ResourceClaim) -> str:
    of = claim.metadata
    return f"/apis/{_VERSION}/namespaces/{of.namespace}/resourceclaims/{of.name}"


def _versioned(claim: ResourceClaim) -> dict[str, Any]:
    return {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version}


def _claim(answer: bytes) -> ResourceClaim:
    try:
        return RESOURCE_CLAIMS.decode(answer)
    except ObjectError as error:
        raise ApiError(0, "Malformed", f"the answer is not a ResourceClaim: {error}") from error
