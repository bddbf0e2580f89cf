"""Time of a decision for pods with pod affinity, engine alone.

Templates are those of Kubernetes' scheduler_perf (affinity). 50,000 pods are placed, some of the template, the others
plain. Then pods of 20 classes of the template are decided and placed one by one, with plain pods in between. Every
node is evaluated. Prints a table, or JSON with `--json`. Unit: µs of processor time.
"""

from __future__ import annotations

import random
from typing import Any

from bench.workloads import CLASSES, HOST, ZONE, node, pod, run
from policysched.model.decode import decode_node
from policysched.model.kinds import NAMESPACES
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster

TEAMS = 100
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMED = {"namespaces": ["sched-1", "sched-0"]}
SELECTED = {"namespaceSelector": {"matchLabels": {"team": "devops"}}}
TEMPLATES: dict[str, tuple[str, str, str, str, dict[str, Any], int]] = {
    "required affinity": ("podAffinity", REQUIRED, "blue", ZONE, NAMED, 5000),
    "required anti-affinity": ("podAntiAffinity", REQUIRED, "green", HOST, NAMED, 1000),
    "preferred affinity": ("podAffinity", PREFERRED, "red", HOST, NAMED, 5000),
    "preferred anti-affinity": ("podAntiAffinity", PREFERRED, "yellow", HOST, NAMED, 5000),
    "required affinity, NSSelector": ("podAffinity", REQUIRED, "blue", ZONE, SELECTED, 5000),
    "required anti-affinity, NSSelector": ("podAntiAffinity", REQUIRED, "green", HOST, SELECTED, 1000),
    "preferred affinity, NSSelector": ("podAffinity", PREFERRED, "red", HOST, SELECTED, 5000),
    "preferred anti-affinity, NSSelector": ("podAntiAffinity", PREFERRED, "yellow", HOST, SELECTED, 5000),
}
"""Value of each template: kind of affinity, required or preferred, color, topology key, namespaces, number of pods
placed before."""


class Workload:
    """A cluster with placed pods, and a source of pods of one affinity template."""

    def __init__(self, template: str, nodes: int, placed: int, zones: int) -> None:
        kind, sort, self._color, key, namespaces, self._before = TEMPLATES[template]
        term = {"topologyKey": key, "labelSelector": {"matchLabels": {"color": self._color}}, **namespaces}
        stated = term if sort == REQUIRED else {"weight": 1, "podAffinityTerm": term}
        self._affinity = {kind: {sort: [stated]}}
        self._teams = namespaces is SELECTED
        self._serial = 0
        self.rng = random.Random(7)
        self.cluster = Cluster()
        for index in range(TEAMS):
            labels = {"team": "devops"}
            self.cluster.take(NAMESPACES.decode({"metadata": {"name": f"init-ns-{index}", "labels": labels}}))
        self.cluster.take(NAMESPACES.decode({"metadata": {"name": "measure-ns-0", "labels": labels}}))
        for index in range(nodes):
            self.cluster.set_node(decode_node(node(index, zones)))
        self._place(placed, nodes)

    def _place(self, count: int, nodes: int) -> None:
        """Place pods round robin: pods of the template on the first nodes, plain pods on all nodes."""
        before = min(self._before, count, nodes)
        for index in range(before):
            self.cluster.assume(self.of_template(f"init-ns-{index % TEAMS}" if self._teams else "sched-0"), index)
        for index in range(count - before):
            self.cluster.assume(self.plain(), index % nodes)

    def of_template(self, namespace: str = "") -> Pod:
        """Return a new pod of a random class of the template."""
        self._serial += 1
        labels = {"color": self._color, "class": str(self.rng.randrange(CLASSES))}
        own = "measure-ns-0" if self._teams else "sched-1"
        return pod(self._serial, namespace or own, labels, affinity=self._affinity)

    def plain(self) -> Pod:
        """Return a new pod without affinity."""
        self._serial += 1
        return pod(self._serial, "default", {"app": f"a{self._serial % CLASSES}"})


if __name__ == "__main__":
    run(__doc__, TEMPLATES, 1, Workload)
