"""Pod groups that a real API server stores and that are expensive for a scheduler.

Their pods need only the right to create pods and pod groups.
"""

from __future__ import annotations

from typing import Final

from bench.hostile_objects import Hostile, Object, pod

GROUPS: Final = "PodGroup"
OTHER: Final = "other-scheduler"


def group(name: str, least: int | None, namespace: str = "default") -> Object:
    """Return a pod group: a gang of at least `least` pods, or a basic group."""
    policy: Object = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    metadata = {"name": name, "namespace": namespace}
    spec = {"schedulingPolicy": policy}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": GROUPS, "metadata": metadata, "spec": spec}


def member(number: int, of: str, cpu: str = "10m", scheduler: str = "default-scheduler", **metadata: str) -> Object:
    """Return a pod of a pod group."""
    made = pod(f"{of}-{number:05}", requests=[{"cpu": cpu}], schedulerName=scheduler)
    made["spec"]["schedulingGroup"] = {"podGroupName": of}
    made["metadata"] |= metadata
    return made


def gang(name: str, size: int, least: int, cpu: str = "10m") -> list[Object]:
    """Return a gang with its pods."""
    return [group(name, least), *(member(number, name, cpu) for number in range(size))]


def mixed(size: int) -> list[Object]:
    """Return a gang whose pods have two scheduler names, and pods that name it in another namespace."""
    names = ("default-scheduler", OTHER)
    own = (member(number, "mixed", scheduler=names[number % 2]) for number in range(size))
    elsewhere = (member(number, "mixed", namespace="kube-public") for number in range(size))
    return [group("mixed", size), *own, *elsewhere]


def min_count(turn: int) -> Object:
    """Return an edit of a gang: fewer or more pods than it has."""
    return {"spec": {"schedulingPolicy": {"gang": {"minCount": 90 + 20 * (turn % 2)}}}}


HOSTILE_GROUPS: Final = (
    Hostile("a gang of 10,000 that fits", lambda: gang("large", 10_000, 10_000), GROUPS),
    Hostile("a gang of 10,000 that does not fit", lambda: gang("large", 10_000, 10_000, "1"), GROUPS),
    Hostile(
        "100 gangs of 50 that need 1,000 pods",
        lambda: [one for number in range(100) for one in gang(f"short-{number}", 50, 1000)],
        GROUPS,
    ),
    Hostile(
        "5,000 groups of one pod",
        lambda: [one for number in range(5000) for one in gang(f"single-{number}", 1, 1)],
        GROUPS,
    ),
    Hostile("a gang of two schedulers and namespaces", lambda: mixed(1000), GROUPS),
    Hostile(
        "minCount of a gang of 100 edited every 10 ms",
        lambda: gang("edited", 100, 110),
        GROUPS,
        edits=("/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/edited", min_count),
    ),
)
