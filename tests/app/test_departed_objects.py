"""A process keeps nothing of deleted objects of any kind: its containers do not grow while objects are replaced.

Caches and logs may grow up to their limits, which are small here. `tests/schedule/test_year.py` runs longer and also
counts the bytes of arrays, for the cluster, the engines and the queue.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter, deque
from collections.abc import Iterator

import pytest

from bench.soak.clock import SimulatedClock, SimulatedLoop
from bench.soak.figures import Meter
from bench.soak.objects import Json
from bench.soak.replica import Replica
from bench.soak.server import SoakServer
from policysched.app.running.metrics import timing_metrics
from policysched.devices import allocator
from policysched.devices.inventory import allocated, columns, node_groups
from policysched.kube.events import bodies
from policysched.state.tables import nodes, sparse
from policysched.state.volumes import attachments
from tests.app.departed_objects import generation
from tests.holdings import holdings

LIVES, NODE_LIVES = 3, 5
"""Number of generations for which objects exist; nodes and their devices exist longer."""
OF_NODES = frozenset(("Node", "CSINode", "ResourceSlice"))
BEFORE, AFTER, LOOKS = 8, 24, 4
"""Generations after which the process is looked at: `LOOKS` generations from each on."""
SHARE = 1.05
"""Largest growth of a container with many elements, such as counts by label values."""
LIMITS = {
    allocator: "MOST_KEPT",
    allocated: "_MOST_REMEMBERED",
    attachments: "MOST_DRIVERS",
    bodies: "MEMORY",
    columns: "_MOST_REMEMBERED",
    node_groups: "_MOST_REMEMBERED",
    nodes: "SPARE_SETS",
    sparse: "SPARE",
    timing_metrics: "TOGETHER",
}
"""Limits by module: maximum numbers of elements, that are reached within a few generations when they are small."""
SMALL = 4
LONG_LIMITED = frozenset(("Strings._codes", "Strings._values"))
"""Containers whose limit of 1,024 unused elements is not reached."""


@pytest.fixture(autouse=True)
def nothing_logged() -> Iterator[None]:
    """Disable logging, as captured records would keep objects alive."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Replaced:
    """A process, and generations of objects that replace each other."""

    def __init__(self) -> None:
        self._clock = SimulatedClock(asyncio.get_running_loop())
        self.server = SoakServer(self._clock, 1)
        self.replica = Replica(self.server, self._clock, Meter(), 1)
        self._lives: deque[list[Json]] = deque()
        self._nodes: deque[list[Json]] = deque()

    async def pass_generation(self, number: int) -> None:
        """Create a generation, and delete the objects whose time is over."""
        made = list(generation(number))
        for one in made:
            self.server.create(one, loaded=one["kind"] != "Pod")
        self._lives.append([one for one in made if one["kind"] not in OF_NODES])
        self._nodes.append([one for one in made if one["kind"] in OF_NODES])
        await asyncio.sleep(3.0)
        for waiting, most in ((self._lives, LIVES), (self._nodes, NODE_LIVES)):
            for one in reversed(waiting.popleft()) if len(waiting) > most else ():
                self._delete(one)
        await asyncio.sleep(2.0)

    def _delete(self, one: Json) -> None:
        kind, name, namespace = one["kind"], one["metadata"]["name"], one["metadata"].get("namespace", "")
        if kind == "Namespace":
            self.server.backend.store.remove("namespaces", "", name)
        else:
            self.server.delete(kind, name, namespace)


async def held() -> list[Counter[str]]:
    """Return the largest holdings of a process after few and after many generations."""
    cluster = Replaced()
    cluster.server.start()
    await cluster.replica.start()
    cluster.replica.turn.lead()
    found: list[Counter[str]] = [Counter(), Counter()]
    for number in range(AFTER + LOOKS):
        await cluster.pass_generation(number)
        for place, first in enumerate((BEFORE, AFTER)):
            if first <= number < first + LOOKS:
                gc.collect()
                found[place] |= holdings([cluster.replica.process])
    await cluster.replica.stop()
    await cluster.server.stop()
    return found


def test_a_process_holds_no_more_after_many_generations_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, limit in LIMITS.items():
        monkeypatch.setattr(module, limit, SMALL)
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        before, after = runner.run(held())
    grown = {
        place: (before[place], count)
        for place, count in after.items()
        if count >= max(before[place] + AFTER - BEFORE, SHARE * before[place])
        and not place.endswith(" bytes")
        and place not in LONG_LIMITED
    }
    assert not grown
