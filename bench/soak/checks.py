"""Comparisons of the soak: what two schedulers know, what the API server holds, and what is left at the end."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from bench.soak import objects
from bench.soak.objects import Json
from bench.soak.replica import Replica
from bench.soak.server import SoakServer
from policysched.model.kinds import FINISHED, PODS
from policysched.state.cluster import Cluster

LONGEST: Final = 300
"""Largest length of a value in a text. Units: characters."""
MOST: Final = 10
"""Number of differences that are reported by name."""
RESOURCES: Final = ("cpu", "memory")
DRAWN: Final = frozenset(("selected", "nominated", "preemption"))
"""Parts of a decision record that depend on a draw among equal nodes, or on the order of equal victims."""
Known = dict[str, Any]


def known(replica: Replica, server: SoakServer) -> Known:
    """Return what a scheduler knows, by name: nodes with their pods and sums, pending pods, devices, policies."""
    scheduler, cluster = replica.process.scheduler, replica.process.scheduler.cluster
    found: Known = {f"node {name}": _on_row(cluster, row) for name, row in cluster.nodes.row_of.items()}
    for pod in pending(server):
        identity, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        nomination = cluster.nominations.get(identity)
        found[f"pod {name}"] = (
            scheduler.queue.get(identity) is not None,
            None if nomination is None else nomination.node,
        )
    allocated = cluster.devices.allocated
    for claim in server.objects("ResourceClaim"):
        uid = claim["metadata"]["uid"]
        found[f"claim {claim['metadata']['name']}"] = sorted(
            (one.pool, one.device) for one in allocated.results_of(uid)
        )
    store = replica.process.reloader.store
    for key in store.listed():
        entry = store.get(key)
        found[f"policy {key}"] = None if entry is None or entry.active is None else entry.active.generation
    return found


def _on_row(cluster: Cluster, row: int) -> Any:
    amounts = cluster.nodes.amounts
    places = [amounts.place(name) for name in RESOURCES]
    sums = [int(amounts.requested[place, row]) for place in places]
    offers = [int(amounts.allocatable[place, row]) for place in places]
    node = cluster.nodes.nodes[row]
    closed = node is not None and (node.spec.unschedulable, [taint.key for taint in node.spec.taints])
    return sums, offers, closed, sorted(one.pod.metadata.name for one in cluster.pods.on_row(row))


def truth(server: SoakServer) -> Known:
    """Return the sums of requested processors and the pods on each node, as the API server holds them."""
    pods: defaultdict[str, list[str]] = defaultdict(list)
    sums: defaultdict[str, int] = defaultdict(int)
    for pod in server.objects("Pod"):
        node = pod["spec"].get("nodeName")
        if node and pod["status"].get("phase") not in FINISHED:
            pods[node].append(pod["metadata"]["name"])
            sums[node] += 1000 * int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
    names = (node["metadata"]["name"] for node in server.objects("Node"))
    return {f"node {name}": (sums[name], sorted(pods[name])) for name in names}


def against_truth(replica: Replica, server: SoakServer) -> list[str]:
    """Return the nodes on which a scheduler knows other pods or another sum than the API server holds."""
    cluster = replica.process.scheduler.cluster
    ours = {f"node {name}": _on_row(cluster, row) for name, row in cluster.nodes.row_of.items()}
    return differences({name: (one[0][0], one[3]) for name, one in ours.items()}, truth(server))


def differences(one: Mapping[str, Any], other: Mapping[str, Any], path: str = "") -> list[str]:
    """Return the paths of different values, with both values."""
    found = []
    for name in {**one, **other}:
        ours, theirs = one.get(name), other.get(name)
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            found += differences(ours, theirs, f"{path}{name}.")
        elif ours != theirs:
            found.append(_different(path + name, ours, theirs))
    return found


def _different(path: str, ours: Any, theirs: Any) -> str:
    return f"{path}: {str(ours)[:LONGEST]} / {str(theirs)[:LONGEST]}"


def pending(server: SoakServer) -> list[Json]:
    """Return the pods without a node that are not being deleted."""
    return [
        pod
        for pod in server.objects("Pod")
        if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
    ]


async def decided(replica: Replica, rng: random.Random, count: int) -> Known:
    """Return the decision records of sample pods by name, without `DRAWN`."""
    scheduler, policies = replica.process.scheduler, replica.process.reloader.in_force
    records: Known = {}
    for number in range(count):
        kind = rng.choice(("batch", "service", "critical"))
        spread = rng.choice(("zones", "hosts", ""))
        shape = objects.Shape(kind, f"service-{rng.randrange(objects.APPS)}", rng.choice((2, 4, 6)), 0.0, spread=spread)
        made = objects.pod(f"sample-{number}", shape)
        made["spec"]["priority"] = objects.PRIORITIES[kind]
        record = await scheduler.dry_run(PODS.decode(made), policies, random.Random(1))
        records[made["metadata"]["name"]] = {key: value for key, value in record.items() if key not in DRAWN}
    return records


def left_in(replica: Replica) -> list[str]:
    """Return what a scheduler still holds after all pods were deleted."""
    scheduler = replica.process.scheduler
    cluster, queue, binder = scheduler.cluster, scheduler.queue, scheduler._binder
    amounts = cluster.nodes.amounts
    held = {
        "pods in the queue": len(queue._pods),
        "pods in flight": sum(queue.in_flight),
        "placed or assumed pods": len(cluster.pods),
        "nominations": len(cluster.nominations),
        "pods that wait at Permit": len(binder.handle.waiting),
        "requests under way": len(scheduler.attempts.tasks),
        "allocated devices": len(cluster.devices.allocated._allocated) + len(cluster.devices.allocated._in_flight),
        "claims in flight": cluster.resource_claims.in_flight,
        "claims": len(cluster.resource_claims),
        "requested amounts": sum(int(amounts.requested[amounts.place(name)].sum()) for name in RESOURCES),
    }
    return [f"{name}: {count}" for name, count in held.items() if count]
