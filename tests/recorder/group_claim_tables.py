"""Scripts about resource claims that the pods of a pod group share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tests.recorder.group_scripts import written_group, written_member, written_script
from tests.recorder.scripts import written_node

Script = dict[str, Any]
Thing = dict[str, Any]
GROUPS: Final = "scheduling.k8s.io"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
BY_NAME: Final = {"name": "gpu", "resourceClaimName": "c"}
BY_TEMPLATE: Final = {"name": "gpu", "resourceClaimTemplateName": "one"}
FIRST: Final = 0.5173
"""When the first object comes. Units: seconds."""
APART: Final = 0.0137
"""What is between two objects that come in a row. Units: seconds."""


def _resource(kind: str, metadata: Thing, spec: Thing, **more: Any) -> Thing:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec, **more}


def devices(**counts: int) -> list[Thing]:
    """Write nodes with 4 CPUs, each with a number of devices of its own."""
    things = [_resource("DeviceClass", {"name": "gpu"}, {})]
    for node, count in counts.items():
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        made = [{"name": f"gpu-{number}"} for number in range(count)]
        spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": made}
        things += [sized(node), _resource("ResourceSlice", {"name": node}, spec)]
    return things


def sized(name: str, cpu: str = "4") -> Thing:
    """Write a node."""
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
    return {**written_node(name), "status": {"allocatable": amounts, "capacity": amounts}}


def claim(name: str = "c", count: int = 1, *, owner: str = "", at: str = "", users: Sequence[Thing] = ()) -> Thing:
    """Write a claim.

    Args:
        name: Its name.
        count: The number of devices.
        owner: The pod group for which it was made.
        at: The node to whose devices it is allocated.
        users: For whom it is reserved.
    """
    asked = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    metadata: Thing = {"name": name, "namespace": "default"}
    if owner:
        of = {"apiVersion": f"{GROUPS}/v1beta1", "kind": "PodGroup", "name": owner, "uid": owner, "controller": True}
        metadata["ownerReferences"] = [of]
    made = _resource("ResourceClaim", metadata, {"devices": {"requests": [{"name": "gpu", "exactly": asked}]}})
    if at:
        metadata["finalizers"] = [FINALIZER]
        field = {"key": "metadata.name", "operator": "In", "values": [at]}
        results = [
            {"request": "gpu", "driver": "gpu.example.com", "pool": at, "device": f"gpu-{number}"}
            for number in range(count)
        ]
        selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        allocation = {"devices": {"results": results}, "nodeSelector": selector}
        made["status"] = {"allocation": allocation, "reservedFor": list(users)}
    return made


def user(name: str = "g") -> Thing:
    """Write the reference to a pod group in a claim's reservedFor."""
    return {"apiGroup": GROUPS, "resource": "podgroups", "name": name, "uid": name}


def group(least: int, *claims: Thing, made: str = "", name: str = "g") -> Thing:
    """Write a gang with claims; `made` is the claim that was made for the entry `gpu`."""
    written = written_group(name, least, resourceClaims=list(claims))
    if made:
        written["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": made}]}
    return written


def member(name: str, entry: Thing | None = None, cpu: str = "1", *, made: str = "", of: str | None = "g") -> Thing:
    """Write a pod that states a claim; `made` is the claim that was made for it."""
    pod = written_member(name, of, cpu, **({} if entry is None else {"resourceClaims": [entry]}))
    if made:
        pod["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": made}]}
    return pod


def members(count: int, entry: Thing | None = None, cpu: str = "1", **more: Any) -> list[Thing]:
    """Write pods that state a claim."""
    return [member(f"p{number}", entry, cpu, **more) for number in range(count)]


def script(
    name: str,
    *things: Thing,
    later: Sequence[Thing] = (),
    gate: bool = True,
    preempts: bool = True,
    until: float = 30.0,
) -> Script:
    """Write a script: objects come in a row, others ten seconds later.

    Args:
        name: Its name.
        things: The objects.
        later: The objects that come later.
        gate: Whether the feature gate DRAWorkloadResourceClaims is on.
        preempts: Whether groups preempt; the message about that replaces the one about claims.
        until: When it ends. Units: seconds.
    """
    timed = [(FIRST + place * APART, one) for place, one in enumerate(things)]
    timed += [(FIRST + 10 + place * APART, one) for place, one in enumerate(later)]
    ranks = {"n1": 2, "n2": 1, "n3": 3}
    made = written_script(name, ranks, [{"at": round(at, 4), "set": one} for at, one in timed], until=until)
    made["gates"]["DRAWorkloadResourceClaims"] = gate
    if not preempts:
        for profile in made["config"]["profiles"]:
            profile["plugins"]["podGroupPostFilter"] = {"disabled": [{"name": "DefaultPreemption"}]}
    return made


ALIKE: Final[dict[str, Script]] = {
    "gang of one": script("one", *devices(n1=1, n2=1), claim(), group(1, BY_NAME), member("p", BY_NAME)),
    "claim of a template": script(
        "template",
        *devices(n1=1),
        claim(owner="g"),
        group(1, BY_TEMPLATE, made="c"),
        member("p", BY_TEMPLATE, made="c"),
    ),
    "claim of another group": script(
        "stranger",
        *devices(n1=1),
        claim(owner="h"),
        group(1, BY_TEMPLATE, made="c"),
        member("p", BY_TEMPLATE, made="c"),
    ),
    "claim that the group lacks": script("missing", *devices(n1=1), claim(), group(1), member("p", BY_NAME)),
    "claim that is not made yet": script(
        "unmade", *devices(n1=1), group(1, BY_TEMPLATE), member("p", BY_TEMPLATE), until=9.0
    ),
    "allocated claim": script(
        "allocated", *devices(n1=1, n2=1), claim(at="n2", users=[user()]), group(2, BY_NAME), *members(2, BY_NAME)
    ),
    "allocated claim that nobody uses": script(
        "unused", *devices(n1=1, n2=1), claim(at="n2"), group(1, BY_NAME), member("p", BY_NAME)
    ),
    "half of the members": script(
        "half", *devices(n1=1, n2=0), claim(), group(4, BY_NAME), *members(4, BY_NAME, "2"), preempts=False, until=9.0
    ),
    "half of the members of an allocated claim": script(
        "half-allocated",
        *devices(n1=1, n2=0),
        claim(at="n1", users=[user()]),
        group(4, BY_NAME),
        *members(4, BY_NAME, "2"),
        until=9.0,
    ),
    "claim on a deleted node": script(
        "deleted", *devices(n1=1), claim(at="n9", users=[user()]), group(1, BY_NAME), member("p", BY_NAME)
    ),
    "claim of another entry is not made": script(
        "entry",
        *devices(n1=1),
        claim(),
        group(2, BY_NAME, {**BY_TEMPLATE, "name": "other"}),
        *members(2, BY_NAME, "3"),
        until=9.0,
    ),
    "claim of another entry is missing": script(
        "entry-gone",
        *devices(n1=1),
        claim(),
        group(2, BY_NAME, {"name": "x", "resourceClaimName": "x"}),
        *members(2, BY_NAME, "3"),
        until=9.0,
    ),
    "without the gate": script(
        "gate",
        *devices(n1=1),
        claim(owner="g"),
        group(1, BY_TEMPLATE, made="c"),
        member("p", BY_TEMPLATE, made="c"),
        gate=False,
        until=9.0,
    ),
    "without the gate, by name": script(
        "gate-name", *devices(n1=1), claim(), group(1, BY_NAME), member("p", BY_NAME), gate=False
    ),
}
"""Scripts that go exactly as in kube-scheduler."""
SHARED: Final[dict[str, Script]] = {
    "members share": script("share", *devices(n1=1, n2=1), claim(), group(3, BY_NAME), *members(3, BY_NAME)),
    "large members, reserved claim": script(
        "reserved",
        *devices(n1=1),
        claim(at="n1", users=[user()]),
        group(2, BY_NAME),
        *members(2, BY_NAME, "3"),
        later=[sized("n1", "8")],
        preempts=False,
    ),
}
"""Scripts that end as in kube-scheduler, in which most of the members that bind at the same time fail first."""
