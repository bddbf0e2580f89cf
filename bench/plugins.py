"""Time of a decision by form of a rule: policy, or Python plugin in each of its forms; engine alone.

Each form filters by a label and scores by a label. Pods of 20 classes are decided one after another, with one
placement between two decisions; every node is evaluated. Prints a table, or JSON with `--json`.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from bench.engine import node, pod
from bench.workloads import decide, lowest
from policysched.app.configuration.profiles import configured_profiles, default_profile
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.model.decode import decode_node
from policysched.model.policy import decode_policy
from policysched.plugin import Aspect, CycleState, NodeArrays, NodeInfo, Pod, Rejections, Status, unresolvable
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster

CLASSES = 20
DECISIONS = 400
NO_DISK = unresolvable("no disk")
FORMS = ("no rule", "policy", "array plugin", "scalar plugin, reads", "scalar plugin")


class Scalar:
    """The rule as a plugin for one node at a time, as in kube-scheduler's framework."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002 - the protocol's
        """Reject nodes without the label `disk`."""
        return None if "disk" in node.labels else NO_DISK

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:  # noqa: ARG002 - the protocol's
        """Prefer nodes with the value `ssd`."""
        return 100 if node.labels["disk"] == "ssd" else 0


class Declared(Scalar):
    """The scalar plugin with a declaration that it reads only labels."""

    reads = Aspect.LABELS


class Arrays:
    """The rule as a plugin for all nodes at once."""

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeArrays) -> Rejections:  # noqa: ARG002 - the protocol's
        """Reject nodes without the label `disk`."""
        return [(~nodes.has_label("disk"), NO_DISK)]

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeArrays) -> Any:  # noqa: ARG002 - the protocol's
        """Prefer nodes with the value `ssd`."""
        return np.where(nodes.label_is("disk", "ssd"), 100, 0)


PLUGINS = {"array plugin": Arrays, "scalar plugin, reads": Declared, "scalar plugin": Scalar}
POLICY = {
    "metadata": {"name": "disk", "generation": 1},
    "spec": {
        "filters": [{"name": "disk", "require": 'has(node.labels["disk"])'}],
        "scores": [{"name": "ssd", "value": 'if(node.labels["disk"] == "ssd", 100, 0)'}],
    },
}


def profile_of(form: str) -> Profile:
    """Return the default profile with the rule in one of its forms."""
    if form == "no rule":
        return default_profile()
    if form == "policy":
        made = compile_policy(decode_policy(POLICY))
        if made.policy is None:
            raise SystemExit(f"the policy of the benchmark does not compile: {made.diagnostics}")
        return PolicySet.of([made.policy]).join(default_profile())
    registry = PluginRegistry()
    registry.register("Disk", lambda _args, _handle: PLUGINS[form]())
    profile = {"schedulerName": "policysched", "plugins": {"multiPoint": {"enabled": [{"name": "Disk"}]}}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    [made_profile] = configured_profiles({**head, "profiles": [profile]}, registry).values()
    return made_profile


def measure(form: str, nodes: int) -> dict[str, Any]:
    """Measure decisions in a cluster.

    Units: microseconds of processor time.
    """
    cluster = Cluster()
    for index in range(nodes):
        cluster.set_node(decode_node(node(index)))
    rng = random.Random(7)
    engine = Engine(cluster, profile_of(form), rng)
    for identity in range(3 * CLASSES):
        decide(engine, pod(identity % CLASSES, identity))
    pods = [pod(rng.randrange(CLASSES), 1000 + identity) for identity in range(DECISIONS)]
    gc.collect()
    gc.freeze()
    return {
        "form": form,
        "nodes": nodes,
        "median": statistics.median(decide(engine, one, time.process_time) for one in pods),
    }


def show(rows: Sequence[dict[str, Any]], sizes: Sequence[int]) -> None:
    """Print the table."""
    table = Table(title="one filter and one score, µs of processor time a decision (median)")
    table.add_column("form")
    for size in sizes:
        table.add_column(f"{size:,} nodes", justify="right")
    for form in FORMS:
        table.add_row(form, *(f"{row['median']:,.0f}" for row in rows if row["form"] == form))
    Console().print(table)


def main() -> None:
    """Measure each form and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 1000, 5000], help="number of nodes")
    parser.add_argument("--passes", type=int, default=3, help="number of passes; the lowest figures are printed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    names = [(form, nodes) for form in FORMS for nodes in given.nodes]
    rows = lowest(given.passes, names, lambda name: measure(*name))
    print(msgspec.json.encode(rows).decode()) if given.json else show(rows, given.nodes)


if __name__ == "__main__":
    main()
