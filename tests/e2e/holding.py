"""A scheduler in this process whose state can be looked at, and what that ought to be: a fresh list of the server.

It knows what the state counts, by node name and pod UID, and nothing of how it came to be. Rows are left out, because
their order depends on the past and decides nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.app.plugins.discovery import find_plugins
from policysched.app.running.configuration_file import ConfigurationFile
from policysched.app.running.metric_clients import make_source
from policysched.app.running.process import Process
from policysched.app.running.run_options import RunOptions
from policysched.framework import Cluster
from policysched.kube.connection import Connection
from policysched.metric_sources.counters import SourceCounters
from policysched.model.decode import decode_node, decode_pod
from policysched.model.kinds import PODS
from policysched.state.tables.amounts import CPU, MEMORY
from tests.e2e.objects import NAME
from tests.e2e.schedulers import Lines
from tests.e2e.server import Server
from tests.e2e.waiting import until

RESOURCES = ("cpu", "memory", "ephemeral-storage")


class Watched(Lines):
    """A scheduler at work, its state and what it logs."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process
        self._work: asyncio.Task[None] | None = None
        self.reflectors = process.reflectors
        self.cluster = process.scheduler.cluster
        self.queue = process.scheduler.queue

    async def begin(self) -> None:
        """Let it run."""
        self._work = asyncio.create_task(self._process.run())

    async def end(self) -> bool:
        """Stop it, and tell whether it had ended by itself."""
        if self._work is None:
            return False
        ended = self._work.done()
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)
        return ended

    def policies(self) -> list[str]:
        """Name the policies in force."""
        return list(self._process.reloader.store.listed())

    def binding(self) -> int:
        """Count the binding cycles under way."""
        return self._process.scheduler.binding_count

    def confirmed(self) -> int:
        """Count the pods that it knows to be bound."""
        return sum(not one.assumed for one in self.cluster.pods.by_id.values())

    async def holds_what_is_listed(self, server: Server, seconds: float) -> None:
        """Wait until its state is that of a scheduler which has just listed everything."""

        async def differences() -> dict[str, Any]:
            fresh, pending = await _listed(server)
            ought = _counted(fresh) | {f"pending {identity}": True for identity in pending}
            found = _counted(self.cluster)
            found |= {f"pending {each}": True for each in pending if self.queue.get(each) is not None}
            names = sorted(found.keys() | ought.keys())
            return {name: (found.get(name), ought.get(name)) for name in names if found.get(name) != ought.get(name)}

        await until(differences, lambda seen: not seen, seconds)
        placed = self.cluster.pods.by_id
        assert [identity for identity in placed if self.queue.get(identity) is not None] == []


@contextlib.asynccontextmanager
async def watched(
    kubeconfig: Path, *, wait: bool = True, config: Path | None = None, plugins: Iterable[str] = ()
) -> AsyncIterator[Watched]:
    """Run a scheduler from its first list to its end; it must not end by itself. Who does not wait begins it.

    Args:
        kubeconfig: How it reaches the server.
        wait: Whether it has to begin to try pods.
        config: Its configuration.
        plugins: What `--plugin` is given.
    """
    log = logging.getLogger("policysched")
    log.setLevel(logging.DEBUG)
    connection = await Connection.open(SystemClock(), kubeconfig=str(kubeconfig))
    found, registry = find_plugins(plugins).registry, CollectorRegistry()
    options = RunOptions(kubeconfig=kubeconfig, scheduler_names=(NAME,), config=config, plugins=found)
    source = make_source(options.metrics, SystemClock(), SourceCounters(registry))
    file = ConfigurationFile(config, found, registry) if config is not None else None
    process = Process(options, connection, source, registry, file)
    made = Watched(process)
    log.addHandler(made)
    try:
        if wait:
            await made.begin()
            await made.started()
        yield made
        assert not await made.end(), made.lines[-20:]
        assert not made.saying("ERROR"), made.saying("ERROR")
    finally:
        await made.end()
        await connection.close()
        log.removeHandler(made)


async def _listed(server: Server) -> tuple[Cluster, list[str]]:
    """Fill a cluster from lists of everything; give the pods of ours that have no node, too."""
    fresh = Cluster()
    for item in (await server.call("GET", "/api/v1/nodes"))["items"]:
        fresh.set_node(decode_node(item))
    pods = [decode_pod(item) for item in (await server.call("GET", "/api/v1/pods"))["items"]]
    kept = [pod for pod in pods if PODS.keep(pod)]
    for pod in kept:
        if pod.spec.node_name:
            fresh.set_pod(pod)
    waiting = [pod for pod in kept if not pod.spec.node_name and pod.spec.scheduler_name == NAME]
    return fresh, [pod.metadata.uid for pod in waiting]


def _counted(cluster: Cluster) -> dict[str, Any]:
    """Give what a cluster knows: each node's columns by its name, each pod's node by its UID."""
    nodes = cluster.nodes
    found: dict[str, Any] = {f"node {name}": _columns(cluster, row) for name, row in nodes.row_of.items()}
    for identity, placed in cluster.pods.by_id.items():
        found[f"pod {identity}"] = (placed.pod.key, nodes.names[placed.row], placed.assumed)
    return found


def _columns(cluster: Cluster, row: int) -> dict[str, Any]:
    """Give a row's counts, and what is said of its node unless that is gone."""
    nodes = cluster.nodes
    found: dict[str, Any] = {
        "requested": [int(nodes.requested(name)[row]) for name in RESOURCES],
        "counts": [int(nodes.pods_count.data[row]), *nodes.amounts.counted[[CPU, MEMORY], row].tolist()],
        "pods": sorted(one.pod.metadata.uid for one in cluster.pods.on_row(row)),
        "present": bool(nodes.present.data[row]),
    }
    if found["present"]:
        found["allocatable"] = [int(nodes.allocatable(name)[row]) for name in RESOURCES]
        found["pods allowed"] = int(nodes.pods_allowed.data[row])
        found["flags"] = [bool(column.data[row]) for column in (nodes.unschedulable, nodes.ready)]
        found["taints"] = nodes.taint_sets.value(int(nodes.taints.data[row]))
    return found
