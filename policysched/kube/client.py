"""Writes to the API server, as requests: `KubeClient` for bindings, conditions, statuses, events.

As in client-go, a request is repeated if the answer has a Retry-After. Otherwise a binding is sent once, because the
queue decides about another attempt. Status writes are repeated here, because no caller repeats them. Bodies are encoded
from structs, because a binding is on the hot path.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec

from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError, Event, PodStatusChange, PolicyEvent
from policysched.klog import V4
from policysched.kube.claim_client import KubeClaimClient
from policysched.kube.events.writer import EventWriter
from policysched.kube.listing import in_served_version
from policysched.kube.request_limits import RequestTurns
from policysched.kube.transport import (
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    REPEATS,
    STRATEGIC_PATCH,
    Body,
    Pacing,
    Retry,
    Transport,
    passes,
)
from policysched.model.kinds import POD_GROUPS, POLICIES, ApiKind
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim, Pod, PodGroup
from policysched.model.objects.storage import BOUND_BY_CONTROLLER, SELECTED_NODE
from policysched.model.policy import Policy, PolicyKey
from policysched.reading.lenient_json import UNREADABLE, identity, shallow

log = logging.getLogger(__name__)
STATUS_ATTEMPTS = 4
CONDITIONS_AT_ONCE = 32
"""Largest number of pod conditions that are written at the same time; more wait, to leave connections for bindings."""
DELETIONS_AT_ONCE = 16
"""Largest number of concurrent deletions of preemption victims, as in kube-scheduler; further deletions wait.

With half as many, the events of evictions use as much of the API server as the evictions.
"""
STATUSES_AT_ONCE = 8
"""Largest number of concurrent pod status writes during preemption; more wait, to leave connections for bindings."""
AT_ONCE = 64
"""Largest number of requests in flight; more wait. Lists, watches and events use other connections."""


class _Metadata(msgspec.Struct):
    name: str
    namespace: str
    uid: str


class _Target(msgspec.Struct):
    name: str
    apiVersion: str = "v1"  # noqa: N815 - the API's name
    kind: str = "Node"


class _Binding(msgspec.Struct):
    metadata: _Metadata
    target: _Target
    apiVersion: str = "v1"  # noqa: N815 - the API's name
    kind: str = "Binding"


class _Identity(msgspec.Struct):
    uid: str = ""


class _Place(msgspec.Struct):
    nodeName: str = ""  # noqa: N815 - the API's name


class _PlacedPod(msgspec.Struct):
    metadata: _Identity = msgspec.field(default_factory=_Identity)
    spec: _Place = msgspec.field(default_factory=_Place)


class _Version(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 - the API's name


class _Versioned(msgspec.Struct):
    metadata: _Version = msgspec.field(default_factory=_Version)


_ENCODER = msgspec.json.Encoder()
_VERSION = msgspec.json.Decoder(_Versioned)
_PLACE = msgspec.json.Decoder(_PlacedPod)


class KubeClient:
    """The framework's `Client` for a real API server."""

    def __init__(self, transport: Transport, events: EventWriter, pacing: Pacing) -> None:
        self._transport = transport
        self._events = events
        self._pacing = pacing
        self._turns, self._conditions = RequestTurns(AT_ONCE), asyncio.Semaphore(CONDITIONS_AT_ONCE)
        self._deletions, self._statuses = asyncio.Semaphore(DELETIONS_AT_ONCE), asyncio.Semaphore(STATUSES_AT_ONCE)
        self.claims = KubeClaimClient(self._request)

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind the pod with this UID, in one attempt; a pod that was recreated under the same name is not bound.

        Raises:
            ApiError: the server rejected the request.
        """
        of = pod.metadata
        body = _ENCODER.encode(_Binding(_Metadata(of.name, of.namespace, of.uid), _Target(node)))
        await self._request("POST", f"/api/v1/namespaces/{of.namespace}/pods/{of.name}/binding", body)

    async def node_of(self, pod: Pod) -> str:
        """Read from the API server the node to which a pod is bound; empty if the pod is not bound.

        Raises:
            ApiError: the server rejected the request; status 404 if no pod of this UID exists.
        """
        of = pod.metadata
        answer = await self._request("GET", f"/api/v1/namespaces/{of.namespace}/pods/{of.name}")
        found = _placed(answer)
        if found is None:
            raise ApiError(0, "Malformed", f'the answer for pod "{pod.key}" is not a Pod')
        if found.metadata.uid != of.uid:
            raise ApiError(HTTPStatus.NOT_FOUND, "NotFound", f'pod "{pod.key}" was recreated')
        return found.spec.nodeName

    async def claim_volume(self, volume: PersistentVolume) -> str:
        """Write a volume's claimRef and return the new resourceVersion of the volume.

        Raises:
            ApiError: the server rejected the request; status 409 if the volume's resourceVersion changed.
        """
        body = {
            "metadata": {
                "resourceVersion": volume.metadata.resource_version,
                "annotations": {
                    key: text for key, text in volume.metadata.annotations.items() if key == BOUND_BY_CONTROLLER
                },
            },
            "spec": {"claimRef": volume.spec.claim_ref},
        }
        return await self._patch_once(f"/api/v1/persistentvolumes/{volume.metadata.name}", body)

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Write the node on which a claim's volume is to be provisioned; return the new resourceVersion of the claim.

        Raises:
            ApiError: the server rejected the request; status 409 if the claim's resourceVersion changed.
        """
        of = claim.metadata
        body = {"metadata": {"resourceVersion": of.resource_version, "annotations": {SELECTED_NODE: node}}}
        return await self._patch_once(f"/api/v1/namespaces/{of.namespace}/persistentvolumeclaims/{of.name}", body)

    async def set_pod_status(self, pod: Pod, change: PodStatusChange) -> None:
        """Write the changed condition and nominated node into the pod's status; conditions of other types stay.

        Raises:
            ApiError: the server rejected the request.
        """
        await self._patch(_status_path(pod), partial(_status_body, pod, change), STRATEGIC_PATCH, self._statuses)

    async def report_pod_status(self, pod: Pod, newest: Callable[[], PodStatusChange]) -> None:
        """Write a pod's status with low priority; `newest` is called for the status when the request is sent.

        Raises:
            ApiError: the server rejected the request.
        """
        await self._patch(
            _status_path(pod), lambda: _status_body(pod, newest()), STRATEGIC_PATCH, self._conditions, last=True
        )

    async def set_pod_group_status(self, group: PodGroup, condition: dict[str, Any]) -> None:
        """Write a condition into the status of the pod group with this UID, with low priority.

        Raises:
            ApiError: the server rejected the request; status 404 if the group does not exist.
        """
        of = group.metadata
        path = f"/apis/{POD_GROUPS.api_version}/namespaces/{of.namespace}/{POD_GROUPS.plural}/{of.name}/status"
        body = _ENCODER.encode({"metadata": {"uid": of.uid}, "status": {"conditions": [condition]}})
        await self._patch(path, body, STRATEGIC_PATCH, self._conditions, last=True)

    async def delete_pod(self, pod: Pod) -> None:
        """Delete the pod with this UID, in one attempt; a pod that was recreated under the same name stays.

        Raises:
            ApiError: the server rejected the request; status 404 if no pod of this UID exists.
        """
        of = pod.metadata
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": of.uid}}
        path = f"/api/v1/namespaces/{of.namespace}/pods/{of.name}"
        try:
            async with self._deletions:
                await self._request("DELETE", path, _ENCODER.encode(options))
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            raise ApiError(HTTPStatus.NOT_FOUND, "NotFound", f'pod "{pod.key}" was recreated') from error

    async def set_policy_status(self, policy: PolicyKey, resource_version: str, status: dict[str, Any]) -> None:
        """Replace a policy's status.

        Raises:
            ApiError: the server rejected the request; status 409 if the policy's resourceVersion changed.
        """
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version}
        body = _ENCODER.encode([version, {"op": "add", "path": "/status", "value": status}])

        async def send(policies: ApiKind[Policy]) -> None:
            await self._patch(f"{policies.path}/{policy}/status", body, JSON_PATCH, nullcontext(), last=True)

        await in_served_version(POLICIES, send)

    async def annotate_policy(self, policy: Policy, annotations: dict[str, str]) -> str:
        """Write annotations of a policy if its spec has not changed, even if other fields have.

        Every write, also of a status, changes the resourceVersion. A controller that writes statuses often must not
        block this write.

        Returns:
            The new resourceVersion of the policy; empty if others wrote to it too, because that version is not only
            ours.

        Raises:
            ApiError: the server rejected the request; status 409 if the policy has another generation or UID.
        """
        return await in_served_version(
            POLICIES, lambda policies: self._annotate(f"{policies.path}/{policy.key}", policy, annotations)
        )

    async def _annotate(self, path: str, policy: Policy, annotations: dict[str, str]) -> str:
        """Write annotations of the policy at an API path, if the policy's spec has not changed."""
        body = {"metadata": {"resourceVersion": policy.metadata.resource_version, "annotations": annotations}}
        try:
            return await self._patch_once(path, body)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
        try:
            await self._request("PATCH", path, _ENCODER.encode(_annotating(policy, annotations)), JSON_PATCH)
        except ApiError as error:
            if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            raise ApiError(HTTPStatus.CONFLICT, "Conflict", f'policy "{policy.key}" has changed') from error
        return ""

    def record(self, event: Event | PolicyEvent) -> None:
        """Queue an event, which is written with lower priority than bindings; a dropped event is logged."""
        self._events.record(event)

    async def _request(
        self, method: str, path: str, body: Body = None, content_type: str = JSON, *, last: bool = False
    ) -> bytes:
        """Send a request within the limit of requests in flight; repeat it a few times if answered with Retry-After."""
        retry = Retry(self._pacing)
        while True:
            try:
                return await self._send(method, path, body, content_type, last=last)
            except ApiError as error:
                if not error.retry_after or not passes(error) or retry.failures >= REPEATS:
                    raise
                log.log(V4, "%s %s is repeated in %g s: %s", method, path, error.retry_after, error)
                await retry.pause(error.retry_after)

    async def _send(self, method: str, path: str, body: Body, content_type: str, *, last: bool) -> bytes:
        """Send a request within the limit of requests in flight; raise `ApiError` if credentials cannot be renewed."""
        try:
            async with self._turns:
                return await self._transport.request(method, path, body, content_type=content_type, last=last)
        except ConnectionProblemError as error:
            raise ApiError(0, "Unauthorized", str(error)) from error

    async def _patch_once(self, path: str, body: dict[str, Any]) -> str:
        answer = await self._request("PATCH", path, _ENCODER.encode(body), MERGE_PATCH)
        try:
            return _VERSION.decode(answer).metadata.resourceVersion
        except UNREADABLE as error:
            version = identity(answer).version
            if not version:
                raise ApiError(0, "Malformed", f"the answer for {path} is not an object: {error}") from error
            return version

    async def _patch(
        self,
        path: str,
        body: Body,
        content_type: str,
        turn: AbstractAsyncContextManager[None],
        *,
        last: bool = False,
    ) -> None:
        """Send a patch within a limit of concurrent patches; repeat the patch after temporary errors."""
        retry = Retry(self._pacing)
        while True:
            try:
                async with turn:
                    await self._send("PATCH", path, body, content_type, last=last)
            except ApiError as error:
                most = REPEATS if error.retry_after else STATUS_ATTEMPTS - 1
                if not passes(error) or retry.failures >= most:
                    raise
                await retry.pause(error.retry_after or 0.0)
            else:
                return


def _status_path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}/status"


def _status_body(pod: Pod, change: PodStatusChange) -> bytes:
    status: dict[str, Any] = {}
    if change.condition is not None:
        status["conditions"] = [change.condition]
    if change.nominated_node is not None:
        status["nominatedNodeName"] = change.nominated_node or None
    return _ENCODER.encode({"metadata": {"uid": pod.metadata.uid}, "status": status})


def _annotating(policy: Policy, annotations: dict[str, str]) -> list[dict[str, Any]]:
    """Return a JSON patch that adds annotations and fails if UID or generation of the policy changed."""
    of, at = policy.metadata, "/metadata/annotations"
    tests: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": of.uid},
        {"op": "test", "path": "/metadata/generation", "value": of.generation},
    ]
    if not of.annotations:
        return [*tests, {"op": "test", "path": at, "value": None}, {"op": "add", "path": at, "value": annotations}]
    names = {name: name.replace("~", "~0").replace("/", "~1") for name in annotations}
    return [
        *tests,
        *({"op": "add", "path": f"{at}/{names[name]}", "value": text} for name, text in annotations.items()),
    ]


def _placed(answer: bytes) -> _PlacedPod | None:
    """Decode the UID and the node of a pod from an answer; None if the answer is not a pod."""
    for read in (bytes, shallow):
        try:
            return _PLACE.decode(read(answer))
        except UNREADABLE:
            pass
    return None
