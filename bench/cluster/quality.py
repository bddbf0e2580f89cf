"""Quality of placements: each chosen node compared with the best node at that moment.

The placements are replayed in order of their bindings. The engine of policysched scores all nodes for each pod with
kube-scheduler's arithmetic, for every scheduler. Bindings can arrive in another order than decisions, so a perfect
choice can score slightly below 1. A placement is wrong if a filter rejects it in every neighbouring order.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from bench.cluster.observation import Name, Observation
from bench.cluster.workloads import Workload
from policysched.app.configuration.profiles import default_profile
from policysched.model.decode import decode_pod
from policysched.model.defaults import fill_pod, priority_classes
from policysched.model.kinds import PODS, POLICIES, fill, kind_of
from policysched.model.objects import Pod
from policysched.model.policy import decode_policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster

OVERLAP: Final = 160
"""Largest number of later bindings that can arrive before the binding of an earlier decision."""
RETRIED: Final = 8
"""Number of rejected placements that are tried again after each successful placement."""
LEAST: Final = 1e-9
"""Quality of a feasible node whose score is 0; 0 itself means infeasible."""
_CLASSES: Final = priority_classes(())
Json = Mapping[str, Any]


def judge(workload: Workload, seen: Observation, nodes: Mapping[Name, str]) -> dict[str, Any]:
    """Return the mean quality of the placements, and the number of wrong placements."""
    engine = Engine(*_cluster(workload), random.Random(7))
    pods = {(of["namespace"], of["name"]): pod for pod in workload.measured_pods() if (of := pod["metadata"])}
    order = sorted(seen.bound, key=lambda pod: seen.sent[pod])
    shares = _replay(engine, [(_decode(pods[name]), nodes[name]) for name in order])
    return {"quality": float(np.mean(shares)), "wrong": shares.count(0.0)} if shares else {}


def _replay(engine: Engine, placements: Sequence[tuple[Pod, str]]) -> list[float]:
    """Replay placements; return the quality of each, 0 if a filter rejects the node.

    A rejected placement is tried again after later placements, because their decisions may have been earlier.
    """
    shares: list[float] = []
    waiting: deque[tuple[int, Pod, str]] = deque()
    for number, (pod, node) in enumerate(placements):
        if not _placed(engine, pod, node, shares):
            waiting.append((number, pod, node))
            continue
        _try_again(engine, waiting, shares)
        while waiting and number - waiting[0][0] > OVERLAP:
            _, late, where = waiting.popleft()
            _placed(engine, late, where, shares, anyway=True)
    for _, pod, node in waiting:
        _placed(engine, pod, node, shares, anyway=True)
    return shares


def _try_again(engine: Engine, waiting: deque[tuple[int, Pod, str]], shares: list[float]) -> None:
    for one in list(islice(waiting, RETRIED)):
        if _placed(engine, *one[1:], shares):
            waiting.remove(one)


def _placed(engine: Engine, pod: Pod, node: str, shares: list[float], *, anyway: bool = False) -> bool:
    """Place a pod and append its quality, if no filter rejects its node or `anyway` is set.

    Return whether it was placed.
    """
    row = engine.cluster.nodes.row_of.get(node)
    share = 0.0 if row is None else _share(engine, pod, row)
    if not share and not anyway:
        return False
    shares.append(share)
    if row is not None:
        engine.cluster.assume(pod, row)
    return True


def _cluster(workload: Workload) -> tuple[Cluster, Any]:
    """Return the cluster before the measured pods are placed, and the profile with the workload's policies."""
    cluster, compiled = Cluster(), []
    for raw in _objects(workload):
        kind = kind_of(raw)
        if kind is PODS:
            pod = _decode(raw)
            if pod.spec.node_name:
                cluster.set_pod(pod)
        elif kind is POLICIES:
            compiled.append(compile_policy(decode_policy(raw)))
        elif kind is not None:
            cluster.take(kind.decode(fill(raw, _CLASSES)))
    policies = PolicySet.of([one.policy for one in compiled if one.policy is not None])
    return cluster, policies.join(default_profile("default-scheduler"))


def _objects(workload: Workload) -> Iterable[Json]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    for step in workload.standing():
        yield from step


def _decode(raw: Json) -> Pod:
    of = raw["metadata"]
    named = {**raw, "metadata": {**of, "uid": f"{of['namespace']}/{of['name']}"}}
    return decode_pod(fill_pod(named, _CLASSES))


def _share(engine: Engine, pod: Pod, row: int) -> float:
    evaluation = engine.find(pod)
    if evaluation.rejection is not None:
        return 0.0
    feasible = evaluation.feasible()
    if not feasible[row]:
        return 0.0
    total = sum((one.final(feasible) for one in evaluation.scores if not one.left_out), np.zeros(feasible.size))
    best = float(total[feasible].max())
    return max(float(total[row]) / best, LEAST) if best > 0 else 1.0
