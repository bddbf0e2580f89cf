"""How good placements are: replayed in the order in which they were sent, each beside the best node then.

The engine of policysched says what every node is worth to each pod before it is placed: kube-scheduler's arithmetic
over all nodes, whoever chose. Bindings do not quite arrive in the order of decisions, so that even a perfect choice may
come to a little less than 1.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
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

JUDGED: Final = 400
"""How many placements are compared, evenly over all of them."""
_CLASSES: Final = priority_classes(())
Json = Mapping[str, Any]


def judge(workload: Workload, seen: Observation, nodes: Mapping[Name, str]) -> dict[str, Any]:
    """Give the mean of the chosen nodes' totals over the best ones', and how many are where a filter is against it."""
    engine = Engine(*_cluster(workload), random.Random(7))
    pods = {(of["namespace"], of["name"]): pod for pod in workload.measured_pods() if (of := pod["metadata"])}
    order = sorted(seen.bound, key=lambda pod: seen.sent[pod])
    every = max(1, len(order) // JUDGED)
    shares = [
        share
        for place, name in enumerate(order)
        if (share := _place(engine, _decode(pods[name]), nodes[name], judged=place % every == 0)) is not None
    ]
    return {"quality": float(np.mean(shares)), "wrong": shares.count(0.0)} if shares else {}


def _cluster(workload: Workload) -> tuple[Cluster, Any]:
    """Make the cluster before anything was placed, and the profile of its policies."""
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


def _place(engine: Engine, pod: Pod, node: str, *, judged: bool) -> float | None:
    """Place a pod where it was placed; give what its node is worth among all, 0 where a filter is against it."""
    cluster = engine.cluster
    row = cluster.nodes.row_of.get(node)
    if row is None:
        return 0.0 if judged else None
    share = _share(engine, pod, row) if judged else None
    cluster.assume(pod, row)
    return share


def _share(engine: Engine, pod: Pod, row: int) -> float:
    evaluation = engine.find(pod)
    if evaluation.rejection is not None:
        return 0.0
    feasible = evaluation.feasible()
    if not feasible[row]:
        return 0.0
    evaluation.score()
    total = sum((one.final(feasible) for one in evaluation.scores if not one.left_out), np.zeros(feasible.size))
    best = float(total[feasible].max())
    return float(total[row]) / best if best > 0 else 1.0
