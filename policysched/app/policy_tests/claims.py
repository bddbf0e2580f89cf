"""Resource claims between the steps of a test: allocations stay, and are released when pods are deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from policysched.model.objects import Pod, ResourceClaim
from policysched.plugins.dynamic_resources.claim_writes import consumer_of
from policysched.plugins.dynamic_resources.extended_resources import IN_MEMORY
from policysched.plugins.dynamic_resources.group_claims import consumers
from policysched.plugins.dynamic_resources.pod_claims import has_claims
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.record import plugin_of_devices

Object = Mapping[str, Any]
Key = tuple[str, str, str]
CLAIM = "ResourceClaim"


def claims_of(decision: Decision) -> list[Object]:
    """Return the claims of a decision's pod in their state after binding; empty if the pod gets no node."""
    plugin, pod = plugin_of_devices(decision), decision.pod
    if plugin is None or decision.row < 0 or not has_claims(pod, decision.cluster):
        return []
    groups, made = consumers(pod, decision.cluster), []
    for claim, got in plugin.devices_on(pod, decision.node, decision.cluster):
        user = groups.get(claim.key) or consumer_of(pod)
        status = replace(claim.status, allocation=got, reserved_for=(*claim.status.reserved_for, user))
        made.append(_as_object(replace(claim, status=status), pod))
    return made


def merged(claims: Iterable[Object]) -> dict[Key, Object]:
    """Return claims by key; pods of one group that share a claim are together in its `reservedFor`."""
    found: dict[Key, Object] = {}
    for claim in claims:
        key = CLAIM, str(claim["metadata"].get("namespace", "")), str(claim["metadata"]["name"])
        users = [one for known in (found.get(key), claim) if known for one in known["status"].get("reservedFor") or ()]
        unique = [one for place, one in enumerate(users) if one not in users[:place]]
        found[key] = {**claim, "status": {**claim["status"], "reservedFor": unique}}
    return found


def _as_object(claim: ResourceClaim, pod: Pod) -> Object:
    if claim.metadata.name == IN_MEMORY:
        name = f"{pod.metadata.name}-extended-resources"
        claim = replace(claim, metadata=replace(claim.metadata, name=name))
    return {"apiVersion": "resource.k8s.io/v1", "kind": CLAIM, **msgspec.json.decode(msgspec.json.encode(claim))}


def release(objects: dict[Key, Object], namespace: str, pod: str) -> None:
    """Remove a deleted pod from its claims; delete claims that were created for it."""
    for key, claim in [*objects.items()]:
        if key[:2] != (CLAIM, namespace):
            continue
        if any(one.get("name") == pod for one in claim["metadata"].get("ownerReferences") or ()):
            del objects[key]
            continue
        status = claim.get("status") or {}
        users = status.get("reservedFor") or []
        left = [one for one in users if (one.get("resource"), one.get("name")) != ("pods", pod)]
        if len(left) != len(users):
            objects[key] = {**claim, "status": {**status, "reservedFor": left} if left else {}}
