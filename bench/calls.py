"""Number of function calls of frequent operations, compared with a stored baseline.

    python -m bench.calls [--write]

Calls of Python and C functions are counted, which are the same on every machine. The exit code is 1 if an operation
needs over 10 % more calls than in `bench/results/calls.json`; `tests/bench/test_calls.py` checks the same. After a
change that needs fewer calls, or more for a reason, `--write` stores the new numbers.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from prometheus_client import CollectorRegistry
from rich.console import Console
from rich.table import Table

from bench import rules, start
from policysched.app.clock import SystemClock
from policysched.app.configuration.profiles import default_profile
from policysched.app.running.metrics.process_metrics import ProcessMetrics
from policysched.app.running.object_handlers import ObjectHandler
from policysched.framework import AssumedPod
from policysched.kube.object_cache import LeftOutObjects, ObjectCache
from policysched.kube.short_requests import AnswerReader
from policysched.language import Environment, compile_expression, load_grammar
from policysched.model.kinds import NODES, PODS, ApiKind
from policysched.model.objects import Pod
from policysched.rules.policy_set.store import PolicyStore
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.observer import LOG_LINES
from policysched.schedule.scheduler import Scheduler
from tests.app.wired import CREATED, wired
from tests.build import node, pod
from tests.plugins.dynamic_resources import objects
from tests.schedule.parts import FakeClient
from tests.work import calls

BASELINE: Final = Path(__file__).parent / "results" / "calls.json"
ALLOWED: Final = 1.1
"""Largest ratio of an operation's calls to its baseline."""
SAMPLE: Final = 200
"""Number of pods or objects whose calls are averaged."""


def scheduled_pod() -> float:
    """Count the calls for a pod from the queue to its stored event."""

    def pods(first: int) -> list[Pod]:
        return [pod(f"pod-{number}", requests={"cpu": "1m"}) for number in range(first, first + SAMPLE)]

    with wired() as (runner, of):
        runner.run(of.place(pods(0)))
        return calls(lambda: runner.run(of.place(pods(SAMPLE)))) / SAMPLE


def listed_object(kind: ApiKind[Any], make: Callable[[int], dict[str, Any]]) -> float:
    """Count the calls for an object of a list, from its JSON to the state and the queue."""
    clock = SystemClock()
    metrics = ProcessMetrics(clock, CollectorRegistry())
    profiles = {start.ME: default_profile(start.ME)}
    observers = (*LOG_LINES, *metrics.observers)
    scheduler = Scheduler(profiles, FakeClient(), clock, random.Random(0), observers, metrics.timing)
    handler = ObjectHandler(scheduler, LeftOutObjects(clock.monotonic))

    def listing(first: int) -> Callable[[], None]:
        listed = ObjectCache(kind, handler.left_out.malformed).replacement()
        raws = [msgspec.Raw(msgspec.json.encode(make(number))) for number in range(first, first + SAMPLE)]

        def take() -> None:
            listed.take(raws)
            handler.replace(*listed.taken())
            listed.finish()

        return take

    listing(0)()
    return calls(listing(SAMPLE)) / SAMPLE


def decision(policies: int, *, first: bool) -> float:
    """Count the calls of a pod's decision after one placement.

    Args:
        policies: Number of policies in force, each with five rules.
        first: Whether the pod is the first of its class, and not like the placed pod.
    """
    cluster, store = rules.loaded(20, 40), PolicyStore()
    for one in rules.policies(policies):
        rules.apply(store, one)
    engine = Engine(cluster, store.policy_set().join(default_profile()), random.Random(1))
    for number in (0, 0, 0, 1):
        placed = rules.pod(number, 100 + len(cluster.pods))
        found = engine.decide(placed)
        cluster.assume(placed, found.row, found.evaluation.pod_resources)
    return calls(lambda: engine.decide(rules.pod(2 if first else 1, 1000)))


def decision_with_claim() -> float:
    """Count the calls of the decision and Reserve for a pod with a claim, on 40 nodes with devices."""
    names = [f"n{number}" for number in range(40)]
    slices = (objects.resource_slice(name, *(f"d{place}" for place in range(4))) for name in names)
    cluster = objects.world(*map(node, names), *slices)
    engine = Engine(cluster, default_profile(), random.Random(1))

    def reserve(one: Pod) -> None:
        name = cluster.nodes.names[engine.decide(one).row]
        cluster.assume(one, cluster.nodes.row_of[name])
        for plugin in engine.profile.reserving(one, cluster):
            plugin.reserve(AssumedPod(one, name, cluster))

    pods = []
    for number in range(12):
        cluster.take(objects.claim(f"c{number}"))
        pods.append(objects.claiming(f"c{number}", name=f"p{number}"))
    for one in pods[:-1]:
        reserve(one)
    return calls(lambda: reserve(pods[-1]))


def response() -> float:
    """Count the calls for reading an API server's response to a write."""
    AnswerReader(1 << 10).take(CREATED)
    return calls(lambda: AnswerReader(1 << 10).take(CREATED))


def expression() -> float:
    """Count the calls of the compilation of a sum of 500 terms."""
    load_grammar()
    compile_expression("1 + 1", Environment())
    text = " + ".join(map(str, range(500)))
    return calls(lambda: compile_expression(text, Environment()))


def placed_pod(number: int) -> dict[str, Any]:
    """Return a placed pod as the API server returns it."""
    return start.pod(number, start.node(number % 7)["metadata"]["name"])


OPERATIONS: Final[Mapping[str, Callable[[], float]]] = {
    "pod, from the queue to its stored event": scheduled_pod,
    "listed node": partial(listed_object, NODES, start.node),
    "listed placed pod": partial(listed_object, PODS, placed_pod),
    "listed pending pod": partial(listed_object, PODS, lambda number: start.pod(number, "")),
    "decision, no policy": partial(decision, 0, first=False),
    "decision, 100 rules": partial(decision, 20, first=False),
    "first decision of a class, 10 rules": partial(decision, 2, first=True),
    "first decision of a class, 100 rules": partial(decision, 20, first=True),
    "decision and Reserve, a claim": decision_with_claim,
    "response of the API server": response,
    "compilation, 500 terms": expression,
}


def baseline() -> dict[str, float]:
    """Return the stored number of calls of each operation."""
    return msgspec.json.decode(BASELINE.read_bytes(), type=dict[str, float])


def main(arguments: list[str] | None = None) -> int:
    """Count and print the calls; return 1 if an operation needs more than its baseline allows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store the numbers as the baseline")
    given = parser.parse_args(arguments)
    counted = {name: round(count(), 1) for name, count in OPERATIONS.items()}
    if given.write:
        BASELINE.write_bytes(msgspec.json.format(msgspec.json.encode(counted), indent=2) + b"\n")
    before = baseline()
    table = Table("operation")
    for head in ("baseline", "now", "ratio"):
        table.add_column(head, justify="right")
    ratios = {name: now / before[name] for name, now in counted.items()}
    for name, now in counted.items():
        table.add_row(name, f"{before[name]:,.1f}", f"{now:,.1f}", f"{ratios[name]:.2f}")
    Console().print(table)
    return int(max(ratios.values()) > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
