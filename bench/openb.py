"""Place the pods of a production GPU cluster, and check that each is on a GPU model that it accepts.

The nodes and pods of the openb trace (alibaba/clusterdata, cluster-trace-gpu-v2023) are loaded into the sandbox. The
scheduler places the first pods in their order of arrival, with the policy of `examples/tour/04-gpu-models`. Each
placed pod is checked against its annotation; each other pod must have a reason.

    python -m bench.openb --data DIR        # or the variable POLICYSCHED_OPENB
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import logging
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policysched.app.demo.scheduled_sandbox import ScheduledSandbox, scheduled_sandbox
from policysched.app.dry_run.tables import plain_table
from policysched.app.running.run_options import RunOptions
from policysched.cli.rich_output import print_parts
from policysched.errors import PolicyschedError, UsageError
from policysched.reading.loading import load

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
MODEL = "gpu-model"
ALLOWED = "gpu-spec"
NODES_FILE, PODS_FILE = "nodes.csv", "pods_gpuspec33.csv"
POLICY = Path(__file__).resolve().parent.parent / "examples" / "tour" / "04-gpu-models" / "policy.yaml"
VARIABLE = "POLICYSCHED_OPENB"
_REASON = re.compile(r"(?:available: |, )\d+ ([^,]+?)(?=, \d|\. |\.$)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The placements and reasons of the pods."""

    nodes: Sequence[Object]
    pods: Sequence[Object]
    seconds: float
    """Time from the creation of the first pod to the last decision."""

    @property
    def placed(self) -> list[Object]:
        """Pods that have a node."""
        return [pod for pod in self.pods if pod["spec"].get("nodeName")]

    def reasons(self) -> Counter[str]:
        """Return how often each set of reasons occurs among the pods without a node."""
        waiting = (_before_preemption(_why(pod)) for pod in self.pods if not pod["spec"].get("nodeName"))
        return Counter(", ".join(sorted(set(_REASON.findall(message)))) or message for message in waiting)

    def faults(self) -> list[str]:
        """Describe the pods on a GPU model that they do not accept, and the waiting pods without a reason."""
        models = {node["metadata"]["name"]: node["metadata"]["labels"].get(MODEL) for node in self.nodes}
        found = [f"{pod['metadata']['name']} waits without a reason" for pod in self.pods if not _settled(pod)]
        for pod in self.placed:
            allowed = pod["metadata"].get("annotations", {}).get(ALLOWED)
            model = models[pod["spec"]["nodeName"]]
            if allowed is not None and model not in allowed.split("|"):
                found.append(f"{pod['metadata']['name']} allows {allowed} and is on a node with {model}")
        return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a placement is wrong, 2 if the data is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.openb", description="Place pods on a production GPU cluster."
    )
    parser.add_argument("--data", default=os.environ.get(VARIABLE), help=f"folder with {NODES_FILE} and {PODS_FILE}")
    parser.add_argument("--pods", type=int, default=500, help="number of pods, in order of arrival")
    parser.add_argument("--seed", type=int, default=1, help="seed of the choice among equally good nodes")
    parser.add_argument("--write", metavar="FILE", help="write the resulting cluster for --cluster of policysched")
    given = parser.parse_args(arguments)
    logging.getLogger("policysched").setLevel(logging.ERROR)
    try:
        nodes, pods = read(given.data, given.pods)
        outcome = asyncio.run(place(nodes, pods, given.seed))
    except PolicyschedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    report(outcome)
    if given.write is not None:
        write(outcome, Path(given.write))
    return int(bool(outcome.faults()))


def read(data: str | None, count: int) -> tuple[list[Object], list[Object]]:
    """Return the nodes and the first pods of the trace.

    Raises:
        UsageError: the data is not there.
    """
    if not data:
        raise UsageError(
            f"where is the openb data? give --data DIR or set {VARIABLE}; bench/README.md says how to get it"
        )
    folder = Path(data)
    for name in (NODES_FILE, PODS_FILE):
        if not (folder / name).is_file():
            raise UsageError(f"{folder} has no {name}; bench/README.md says how to get it")
    nodes = [_node(row) for row in _rows(folder / NODES_FILE)]
    pods = [_pod(row) for row, _ in zip(_rows(folder / PODS_FILE), range(count), strict=False)]
    return nodes, pods


async def place(nodes: Sequence[Object], pods: Sequence[Object], seed: int | None = None) -> Outcome:
    """Create the pods one after another, each when the previous one has a node or a reason."""
    (policy,) = load([str(POLICY)])
    async with scheduled_sandbox(nodes, RunOptions(seed=seed), kubelet_seconds=None) as on:
        await on.apply(dict(policy.object))
        begin = time.perf_counter()
        for pod in pods:
            await on.api.create(pod)
        decided = await on.until(lambda: _decided(on), "a decision for every pod", 600)
        seconds = time.perf_counter() - begin
        return Outcome(on.sandbox.objects("Node"), decided, seconds)


async def _decided(on: ScheduledSandbox) -> list[Object] | None:
    pods = on.sandbox.objects("Pod")
    return pods if all(_settled(pod) for pod in pods) else None


def report(outcome: Outcome) -> None:
    """Print the placements and reasons."""
    count, placed = len(outcome.pods), len(outcome.placed)
    print(f"{len(outcome.nodes)} nodes, {count} pods in order of arrival: {placed} placed, {count - placed} waiting")
    print(f"{outcome.seconds:.1f} s, {count / outcome.seconds:.0f} pods/s, sandbox and scheduler in one process")
    print_parts([plain_table(None, ("GPU model", "nodes", "GPUs", "used", "nodes in use"), _use(outcome), range(1, 5))])
    print()
    with_models = sum(ALLOWED in pod["metadata"].get("annotations", {}) for pod in outcome.placed)
    faults = outcome.faults()
    print(f"{with_models} placed pods name their models; {len(faults)} are wrong")
    for one in faults[:10]:
        print(f"  {one}")
    for reason, number in outcome.reasons().most_common():
        print(f"{number} waiting: {reason}")


def write(outcome: Outcome, path: Path) -> None:
    """Write nodes, pods and the policy as a List, in JSON."""
    objects = [*outcome.nodes, *outcome.pods, *(one.object for one in load([str(POLICY)]))]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), "utf-8")
    print(f"{len(objects):,} objects in {path}")


def _use(outcome: Outcome) -> Iterable[tuple[str, ...]]:
    models = {node["metadata"]["name"]: node["metadata"]["labels"].get(MODEL, "") for node in outcome.nodes}
    there, used, busy = Counter[str](), Counter[str](), dict[str, set[str]]()
    for node in outcome.nodes:
        there[models[node["metadata"]["name"]]] += int(node["status"]["allocatable"].get(GPU, 0))
    for pod in outcome.placed:
        node = pod["spec"]["nodeName"]
        used[models[node]] += int(pod["spec"]["containers"][0]["resources"]["requests"].get(GPU, 0))
        busy.setdefault(models[node], set()).add(node)
    sizes = Counter(models.values())
    for model in sorted(there, key=lambda name: (name == "", name)):
        share = f"{used[model]} ({used[model] / there[model]:.0%})" if there[model] else "0"
        yield model or "(none)", str(sizes[model]), str(there[model]), share, str(len(busy.get(model, ())))


def _settled(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName") or _why(pod))


def _before_preemption(message: str) -> str:
    """Return why no node is feasible, without the message of PostFilter."""
    return message.partition(" preemption: ")[0]


def _why(pod: Object) -> str:
    conditions = pod["status"].get("conditions") or ()
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


def _rows(path: Path) -> Iterable[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _node(row: dict[str, str]) -> Object:
    amounts = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": "110"}
    labels = {"kubernetes.io/hostname": row["sn"]}
    if int(row["gpu"]):
        amounts[GPU] = row["gpu"]
        labels[MODEL] = row["model"]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": row["sn"], "labels": labels},
        "status": {"capacity": amounts, "allocatable": dict(amounts)},
    }


def _pod(row: dict[str, str]) -> Object:
    requests = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
    limits = {GPU: row["num_gpu"]} if int(row["num_gpu"]) else {}
    annotations = {ALLOWED: row["gpu_spec"]} if row["gpu_spec"] else {}
    resources = {"requests": requests | limits, "limits": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": row["name"], "labels": {"qos": row["qos"]}, "annotations": annotations},
        "spec": {
            "schedulerName": "policysched",
            "containers": [{"name": "task", "image": "task", "resources": resources}],
        },
    }


if __name__ == "__main__":
    sys.exit(main())
