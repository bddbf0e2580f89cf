"""`KubeClaimClient`: what the scheduler reads and writes of resource claims, as requests.

Writes are patches of just the fields that change, against the claim's version where it matters: what this process does
not know of a claim stays as it is. Each is sent once; whoever asks for it repeats it where the claim has moved on.

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
    """Sends a request in its turn and returns the answer."""

    def __call__(self, method: str, path: str, body: Body = None, content_type: str = JSON) -> Awaitable[bytes]:
        """Send it.

        Raises:
            ApiError: the server refused.
        """


class KubeClaimClient:
    """The `ClaimClient` of the framework, over a real API server.

    Args:
        send: Sends a request.
    """

    def __init__(self, send: SendRequest) -> None:
        self._send = send

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        """Read the newest version of a claim."""
        return _claim(await self._send("GET", _path(claim)))

    async def set_finalizers(self, claim: ResourceClaim) -> ResourceClaim:
        """Write a claim's finalizers, against its version."""
        body = {"metadata": _versioned(claim) | {"finalizers": claim.metadata.finalizers or None}}
        return _claim(await self._send("PATCH", _path(claim), _ENCODER.encode(body), MERGE_PATCH))

    async def allocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Write a claim's allocation and for whom it is reserved, against its version.

        A merge patch would take nulls out of what drivers are told.
        """
        of = claim.metadata
        status = {"reservedFor": claim.status.reserved_for, "allocation": claim.status.allocation}
        expected = (("/metadata/uid", of.uid), ("/metadata/resourceVersion", of.resource_version))
        patch: list[Any] = [{"op": "replace", "path": path, "value": value} for path, value in expected]
        body = _ENCODER.encode([*patch, {"op": "add", "path": "/status", "value": status}])
        return _claim(await self._send("PATCH", f"{_path(claim)}/status", body, JSON_PATCH))

    async def reserve(self, claim: ResourceClaim) -> ResourceClaim:
        """Write for whom a claim is reserved, against its version; its allocation stays as others have written it."""
        return await self._set_status(claim, {"reservedFor": claim.status.reserved_for})

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Take everything out of a claim's status, against its version."""
        return await self._set_status(claim, dict.fromkeys(("reservedFor", "allocation", "devices")))

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim of what its spec says; the server completes its name."""
        of = claim.metadata
        metadata = replace(of, name="", uid="", resource_version="", finalizers=())
        body = {"apiVersion": _VERSION, "kind": "ResourceClaim", "metadata": metadata, "spec": claim.spec}
        path = f"/apis/{_VERSION}/namespaces/{of.namespace}/resourceclaims"
        return _claim(await self._send("POST", path, _ENCODER.encode(body)))

    async def _set_status(self, claim: ResourceClaim, status: dict[str, Any]) -> ResourceClaim:
        body = _ENCODER.encode({"metadata": _versioned(claim), "status": status})
        return _claim(await self._send("PATCH", f"{_path(claim)}/status", body, MERGE_PATCH))

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim; the UID keeps one made anew under the same name from being deleted instead.

        Raises:
            ApiError: the server refused; status 404 where the claim, by its UID, is gone.
        """
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": claim.metadata.uid}}
        try:
            await self._send("DELETE", _path(claim), _ENCODER.encode(options))
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            raise ApiError(HTTPStatus.NOT_FOUND, "NotFound", f'ResourceClaim "{claim.key}" was recreated') from error

    async def tell_pod(self, pod: Pod, told: PodExtendedClaimStatus) -> None:
        """Write into a pod's status which claim holds its extended resources."""
        of = pod.metadata
        body = {"metadata": {"uid": of.uid}, "status": {"extendedResourceClaimStatus": told}}
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
