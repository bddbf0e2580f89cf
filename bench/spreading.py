"""Time of a decision for pods with topology spread, engine alone.

Templates are those of Kubernetes' scheduler_perf (topology spreading), and hard constraints over host names. 50,000
pods are placed, some of the template, the others plain. Then pods of 20 classes of the template are decided and
placed one by one, with plain pods in between. Every node is evaluated. Prints a table, or JSON with `--json`. Unit:
µs of processor time.
"""

from __future__ import annotations

import random
from typing import Any

from bench.workloads import CLASSES, HOST, ZONE, node, pod, run
from policysched.model.decode import decode_node
from policysched.model.objects import LabelsSpec, Metadata, Pod, Service
from policysched.state.cluster import Cluster

NAMESPACE = "service-ns"
BLUE = {"color": "blue"}


def constraint(key: str, action: str, max_skew: int = 5, **more: Any) -> dict[str, Any]:
    """Return a spread constraint."""
    selector = {"matchLabels": BLUE}
    return {
        "maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector, **more
    }  # fmt: skip


TEMPLATES: dict[str, list[dict[str, Any]]] = {
    "hard over zones": [constraint(ZONE, "DoNotSchedule")],
    "soft over zones": [constraint(ZONE, "ScheduleAnyway")],
    "default through a Service": [],
    "hard over host names": [constraint(HOST, "DoNotSchedule", 1)],
    "hard over tolerated nodes": [constraint(HOST, "DoNotSchedule", 1, nodeTaintsPolicy="Honor")],
    "hard over zones, soft over host names": [
        constraint(ZONE, "DoNotSchedule"),
        constraint(HOST, "ScheduleAnyway", 1),
    ],
}


class Workload:
    """A cluster with placed pods, and a source of pods of one spreading template."""

    def __init__(self, template: str, nodes: int, placed: int, zones: int) -> None:
        self._constraints = TEMPLATES[template]
        self._serial = 0
        self.rng = random.Random(7)
        self.cluster = Cluster()
        for index in range(nodes):
            self.cluster.set_node(decode_node(node(index, zones)))
        service = Metadata(name="service", namespace=NAMESPACE)
        self.cluster.workloads.put(Service(metadata=service, spec=LabelsSpec(selector=BLUE)))
        for index in range(placed):
            one = self.of_template() if index < nodes else self.plain()
            self.cluster.assume(one, index % nodes)

    def of_template(self) -> Pod:
        """Return a new pod of a random class of the template."""
        self._serial += 1
        labels = BLUE | {"class": str(self.rng.randrange(CLASSES))}
        return pod(self._serial, NAMESPACE, labels, topologySpreadConstraints=self._constraints)

    def plain(self) -> Pod:
        """Return a new pod without spread constraints."""
        self._serial += 1
        return pod(self._serial, NAMESPACE, {"app": f"a{self._serial % CLASSES}"})


if __name__ == "__main__":
    run(__doc__, TEMPLATES, 3, Workload)
