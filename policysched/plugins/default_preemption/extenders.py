"""Calls extenders in preemption (ProcessPreemption): they drop candidates or replace their victims.

Source: pkg/scheduler/framework/preemption/preemption.go (callExtenders, pickOneNodeForPreemption), extender.go
(convertToVictims), v1.36.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from policysched.framework import Cluster
from policysched.framework.extender import Extender, ExtenderError, NamedVictims, NodeVictims
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.default_preemption.candidates import LOWEST
from policysched.plugins.default_preemption.guards import Guarded
from policysched.state.placed.pods import PlacedPod

log = logging.getLogger(__name__)
NONE_LEFT: Final = "no candidate node for preemption"


async def ask_extenders(
    pod: Pod, extenders: Sequence[Extender], candidates: Mapping[str, NodeVictims], cluster: Cluster
) -> dict[str, NodeVictims]:
    """Call one extender after the other with the candidates that the earlier ones left.

    The cluster may change meanwhile: the victims that an extender names are looked up after its answer.

    Args:
        pod: The pod that is to fit.
        extenders: The extenders that are interested in the pod and take part in preemption.
        candidates: The victims by node.
        cluster: The cluster.

    Raises:
        ExtenderError: An extender that is not ignorable failed, or named an unknown node or pod.
    """
    left = dict(candidates)
    for extender in extenders:
        try:
            left = _known(extender, await extender.preempt(pod, left), left, cluster)
        except ExtenderError as error:
            if not extender.ignorable:
                raise
            log.warning(
                'extender "%s" failed to process preemption for pod "%s" and is ignored: %s',
                extender.name,
                pod.key,
                error,
            )
        if not left:
            break
    return left


def without_guarded(pod: Pod, candidates: Mapping[str, NodeVictims], guarded: Guarded) -> dict[str, NodeVictims]:
    """Drop candidates with a victim that guards protect, whoever named the victim."""
    kept = guarded.reasons()
    row_of = guarded.cluster.nodes.row_of
    left = {node: victims for node, victims in candidates.items() if row_of.get(node) not in kept}
    if len(left) < len(candidates):
        nodes = ",".join(sorted(candidates.keys() - left.keys()))
        log.warning(
            'preemption for pod "%s" skips nodes %s: extenders kept or named victims that policies protect',
            pod.key,
            nodes,
        )
    return left


def _known(
    extender: Extender, named: Mapping[str, NamedVictims], asked: Mapping[str, NodeVictims], cluster: Cluster
) -> dict[str, NodeVictims]:
    """Look up the victims that an extender named; candidates' victims that are deleted meanwhile are skipped.

    Raises:
        ExtenderError: A victim was never on the node, or a node has no victims.
    """
    found = {}
    for node, victims in named.items():
        told = {one.metadata.uid for one in asked[node].pods} if node in asked else set()
        pods = {one.pod.metadata.uid: one.pod for one in _placed_on(node, cluster, gone=node in asked)}
        for uid in victims.uids:
            if uid not in pods and uid not in told:
                raise ExtenderError(
                    f"extender: {extender.name} claims to preempt pod (UID: {uid}) on node: {node}, "
                    "but the pod is not found on that node"
                )
        if not victims.uids and not extender.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{node}"')
        if there := tuple(pods[uid] for uid in victims.uids if uid in pods):
            found[node] = NodeVictims(there, victims.pdb_violations)
    return found


def _placed_on(node: str, cluster: Cluster, *, gone: bool) -> list[PlacedPod]:
    """Return the pods of a node; none if the node may be deleted (`gone`) and is."""
    row = cluster.nodes.row_of.get(node, -1)
    if row >= 0 and cluster.nodes.present.data[row]:
        return cluster.pods.on_row(row)
    if gone:
        return []
    raise ExtenderError(f'nodeinfo not found for node name "{node}"')


def least_costly(candidates: Mapping[str, NodeVictims], cluster: Cluster) -> list[str]:
    """Return the nodes whose victims cost least, by name."""
    costs = {node: _cost(victims, cluster) for node, victims in candidates.items()}
    least = min(costs.values(), default=None)
    return sorted(node for node, cost in costs.items() if cost == least)


def _cost(victims: NodeVictims, cluster: Cluster) -> tuple[float, ...]:
    """Return the cost by each criterion; the first victim is treated as the most important one."""
    priorities = [pod_priority(one) for one in victims.pods]
    highest = max(priorities)
    first_ones = [one for one, priority in zip(victims.pods, priorities, strict=True) if priority == highest]
    started = _first_start(first_ones, cluster)
    total = sum(priority - LOWEST for priority in priorities)
    return victims.pdb_violations, priorities[0], total, len(priorities), -started


def _first_start(pods: Sequence[Pod], cluster: Cluster) -> float:
    """Return the earliest start of pods; the current time for pods that have not started."""
    placed = (cluster.pods.by_id.get(one.metadata.uid) for one in pods)
    slots = np.array([one.slot for one in placed if one is not None], np.intp)
    return min(cluster.time.seconds, float(cluster.pods.starts(slots).min(initial=np.inf)))
