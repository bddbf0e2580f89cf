"""Time of a decision with a hundred rules in force: 20 policies of 5 rules with individual constants.

Rules as in the cookbook: labels, room, licences, peers of a team, spreading over zones, load, ages, images. 5,000
nodes, 50,000 placed pods, pods of 200 classes. Measured: decision after one placement, decision in random order of
classes, first decision of a class, edit of a policy of ten rules until it is in force, compilation per rule,
comparison of a label on all nodes. Times are processor time. Prints a table, or JSON with `--json`.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bench.workloads import decide, lowest
from policysched.app.configuration.profiles import default_profile
from policysched.language.checking.compile import compile_expression
from policysched.language.evaluation.columns import Batch
from policysched.language.functions.signatures import Environment
from policysched.model.decode import decode_node, decode_pod
from policysched.model.objects import Pod
from policysched.model.policy import MetricAnswer, MetricKey, Policy, Sample, decode_policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.rules.policy_set.store import PolicyStore
from policysched.rules.shared_values.aggregates import evaluation_context
from policysched.rules.shared_values.context import RuleFrame
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster

RULES = 10
"""Number of rules of the policies that are compiled and edited."""
NOW = 1_767_225_600.0
"""Time of the benchmark's clock: 2026-01-01. Units: seconds since 1970."""
CLASSES = 200
APPS = 40
TEAMS = 10
ZONES = 3
RACKS = 50
FILTERS = (
    'node.name != "piworknode{n:03}"',
    'node.labels["pool"] in ["spot", "on-demand", "p{n}"]',
    "node.free.memory - pod.requests.memory >= {n}Mi",
    'sum(node.pods.count(peer.labels["license"] == "matlab{m}")) < 60000',
    'not node.pods.any(peer.labels["team"] == "noisy{n}")',
    'node.pods.count(peer.labels["app"] == pod.labels["app"]) < {n} + 60',
    'node.labels["gpu-model"] in split(pod.annotations["gpu-spec"] ?? "a100|h100|t4|l4|k{n}", "|")',
    '(avg(if(node.ready, 1, 0)) by node.labels["rack"] > 30%) ?? true',
    'not clock("22:00", "06:00") or node.labels["env"] != "prod{n}"',
    'sum(node.pods.count(peer.labels["team"] == pod.labels["team"])) by node.zone < 60000 + {n}',
    "(metrics.load < 95%) ?? true",
    'number(node.labels["cores"]) >= 1 and not node.taints.has("quarantine{n}")',
)
SCORES: tuple[dict[str, Any], ...] = (
    {"value": "scale(node.requested.cpu / node.allocatable.cpu, {m}%, 100%)"},
    {"value": "clamp(100 - {n} * abs(node.requested.cpu / node.allocatable.cpu"
              " - node.requested.memory / node.allocatable.memory), 0, 100)"},
    {"cases": ['node.labels["pool"] == "spot" → {m}', "else → 20"]},
    {"cases": ['node.labels[concat("cache-", pod.namespace)] == "yes" → 90', "else → {m}", "missing → 5"]},
    {"cases": ["in_zone <= min(in_zone) → 100", "else → {m}", "missing → 0"]},
    {"cases": ["metrics.load < 90% → scale(metrics.load, 90%, 0%)", "else → 0", "missing → {m}"]},
    {"value": "least(100, 100 * node.cached_image_bytes / greatest(pod.image_bytes, {n}Mi))"},
    {"value": 'clamp(100 - node.pods.sum(peer.requests.cpu, peer.labels["noisy"] == "y{m}")'
              " / node.allocatable.cpu * 100, 0, 100)"},
    {"value": "scale(node.age, 0s, {n}h)"},
    {"value": 'number(node.labels["price"]) ?? {m}', "normalize": "Max"},
)  # fmt: skip
IN_ZONE = 'sum(node.pods.count(peer.labels["app"] == "a{m}")) by node.zone'
LOAD = {"name": "load", "query": "load", "maxAge": "10min"}


def node(index: int) -> dict[str, Any]:
    """Return a node as the API server returns it."""
    labels = {
        "kubernetes.io/hostname": f"node-{index}",
        "topology.kubernetes.io/zone": f"zone-{index % ZONES}",
        "rack": f"r{index % RACKS}",
        "pool": ("spot", "on-demand")[index % 2],
        "gpu-model": ("a100", "h100", "t4", "l4")[index % 4],
        "cores": str(4 + index % 60),
        "price": str(1 + index % 9),
        "env": f"prod{index % 7}",
    }
    return {
        "metadata": {"name": f"node-{index}", "labels": labels, "creationTimestamp": "2025-12-31T12:00:00Z"},
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(index: int, identity: int, on: str = "") -> Pod:
    """Return a pod of a class; `identity` distinguishes pods of the same class."""
    labels = {"app": f"a{index % APPS}", "team": f"t{index % TEAMS}", "tier": f"{index // APPS}"}
    if index % 11 == 0:
        labels["license"] = f"matlab{index % 3}"
    container = {
        "name": "main",
        "image": f"registry.example/app-{index % 20}:1",
        "resources": {"requests": {"cpu": f"{10 + index % 7}m", "memory": f"{8 + index % 5}Mi"}},
    }
    metadata = {"name": f"p-{identity}", "namespace": "default", "uid": f"u-{identity}", "labels": labels}
    spec = {"schedulerName": "policysched", "containers": [container], "nodeName": on}
    return decode_pod({"metadata": metadata, "spec": spec})


def policies(count: int) -> list[Policy]:
    """Return policies of three filters and two scores."""
    filters, scores = cycle(FILTERS), cycle(SCORES)
    return [
        policy(f"policy-{index}", index, list(islice(filters, 3)), list(islice(scores, 2))) for index in range(count)
    ]


def policy(
    name: str, number: int, filters: Sequence[str], scores: Sequence[dict[str, Any]], generation: int = 1
) -> Policy:
    """Return a policy with its number in its constants."""
    spec = {
        "metrics": [LOAD],
        "let": [{"name": "in_zone", "value": IN_ZONE}],
        "filters": [{"name": f"f{place}", "require": text} for place, text in enumerate(filters)],
        "scores": [{"name": f"s{place}", **score} for place, score in enumerate(scores)],
    }
    filled = _filled(spec, number)
    return decode_policy({"metadata": {"name": name, "generation": generation, "uid": name}, "spec": filled})


def _filled(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, number) for item in value]
    text = value.replace("{n:03}", f"{number + 1:03}") if isinstance(value, str) else value
    return text.replace("{n}", str(number + 1)).replace("{m}", str(number % 20 + 1)) if isinstance(text, str) else text


def loaded(nodes: int, pods: int) -> Cluster:
    """Return a cluster with placed pods."""
    cluster = Cluster()
    cluster.time.move(NOW)
    for index in range(nodes):
        cluster.set_node(decode_node(node(index)))
    for number in range(pods):
        cluster.set_pod(pod(number % CLASSES, -1 - number, f"node-{number % nodes}"))
    samples = {f"node-{index}": Sample(index % 80 / 100, NOW) for index in range(nodes)}
    cluster.metrics.take(MetricAnswer(MetricKey("load", "node"), samples))
    return cluster


def apply(store: PolicyStore, given: Policy) -> PolicySet:
    """Store a policy, and return the resulting policy set."""
    store.apply(given)
    entry = store.get(given.key)
    if entry is None or entry.result.policy is None:
        raise SystemExit(f"a policy of the benchmark does not compile: {entry and entry.result.diagnostics}")
    return store.policy_set()


def measure(nodes: int, pods: int, count: int, decisions: int) -> dict[str, float]:
    """Measure decisions in a cluster.

    Units: microseconds of processor time, memory in MiB.
    """
    cluster, store, rng = loaded(nodes, pods), PolicyStore(), random.Random(7)
    for one in policies(count):
        active = apply(store, one)
    profile = default_profile()
    engine = Engine(cluster, active.join(profile), rng)
    _decide(engine, pod(CLASSES, 1))
    cold = [_decide(engine, pod(index, 10 + index)) for index in range(CLASSES)]
    gc.collect()
    gc.freeze()
    same = [_decide(engine, pod(3, 10_000 + number)) for number in range(decisions)]
    mixed = [_decide(engine, pod(rng.randrange(CLASSES), 100_000 + number)) for number in range(decisions)]
    edits = [_timed(partial(_edit, store, number, engine, profile)) for number in range(20)]
    return {
        "nodes": nodes,
        "pods": pods,
        "policies": count,
        "last": statistics.median(same),
        "mixed": statistics.median(mixed),
        "first": statistics.median(cold),
        "edit": statistics.median(edits),
        "compile": statistics.median(_timed(partial(_compile, 1000 + number)) for number in range(20)) / RULES,
        "equal": _equal(cluster),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _edit(store: PolicyStore, number: int, engine: Engine, profile: Any) -> None:
    """Put another version of a policy of ten rules in force."""
    edited = policy("edited", number, FILTERS[:6], SCORES[:4], number + 1)
    engine.use(apply(store, edited).join(profile))


def _compile(number: int) -> None:
    """Compile a policy with constants of its own, so that nothing is cached."""
    if compile_policy(policy("new", number, FILTERS[:6], SCORES[:4])).policy is None:
        raise SystemExit("a policy of the benchmark does not compile")


def _equal(cluster: Cluster) -> float:
    """Return the time of comparing a label with a text on all nodes, as policies do, without cached results."""
    program, context = (
        compile_expression('node.labels["pool"] == "spot"', Environment()).program,
        evaluation_context(cluster),
    )
    if program is None:
        raise SystemExit("a comparison of the benchmark does not compile")
    rows, batch = context.everything(), Batch([program.root])
    taken = []
    for _ in range(20):
        frames = [RuleFrame(context, context.no_pod, rows) for _ in range(100)]
        taken.append(_timed(partial(_evaluate, batch, frames)) / len(frames))
    return statistics.median(taken)


def _evaluate(batch: Batch, frames: Sequence[RuleFrame]) -> None:
    for frame in frames:
        batch.evaluate(frame)


def _timed(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return (time.thread_time() - started) * 1e6


def _decide(engine: Engine, one: Pod) -> float:
    return decide(engine, one, time.thread_time)


def show(rows: Sequence[dict[str, float]]) -> None:
    """Print the table."""
    table = Table(title="with policies of five rules, µs of processor time, all nodes evaluated")
    named = {
        "nodes": "nodes",
        "pods": "placed pods",
        "policies": "policies",
        "last": "last placed only",
        "mixed": "random classes",
        "first": "first of a class",
        "edit": "edit in force",
        "compile": "compile a rule",
        "equal": "label ==",
        "memory": "peak MiB",
    }
    for title in named.values():
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(*(f"{row[name]:,.{1 if name == 'equal' else 0}f}" for name in named))
    Console().print(table)


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000, help="number of nodes")
    parser.add_argument("--pods", type=int, default=50_000, help="number of pods")
    parser.add_argument("--policies", type=int, nargs="*", default=[1, 20], help="number of policies")
    parser.add_argument("--decisions", type=int, default=500, help="number of timed decisions")
    parser.add_argument("--passes", type=int, default=3, help="number of passes; the lowest figures are printed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    rows = lowest(given.passes, given.policies, lambda count: measure(given.nodes, given.pods, count, given.decisions))
    print(msgspec.json.encode(rows).decode()) if given.json else show(rows)


if __name__ == "__main__":
    main()
