"""Store a workload's objects in an API server once, and give every scheduler a fresh copy.

The copy is etcd's data: before each run, etcd and the API server start on it. No controller runs.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml

from bench.cluster.client import Client
from bench.cluster.schedulers import GATE
from bench.cluster.workloads import Workload
from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import DEFINITION

ADMISSION: Final = "ServiceAccount,TaintNodesByCondition,Priority"
"""Admission plugins that are disabled, as in scheduler_perf: pods have their priority, and nodes get no taints."""
SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - where etcd's data is written to memory; folders in it are our own
AUDIT: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": ["create"],
            "resources": [
                {"group": "", "resources": ["pods", "pods/binding", "events"]},
                {"group": "events.k8s.io", "resources": ["events"]},
            ],
        },
        {"level": "None"},
    ],
}
"""Audit policy that logs the creation of pods, bindings and events."""


class State:
    """A control plane that stores the objects of one workload at a time."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._empty, self._kept = plane.folder / "empty", plane.folder / "kept"
        self._made: Workload | None = None
        plane.load([DEFINITION])
        plane.save(self._empty)

    def make(self, workload: Workload) -> None:
        """Create all objects of a workload in an empty API server and keep etcd's data, unless it is kept already."""
        if workload.same_objects() == self._made:
            return
        self._made = None
        self.plane.restore(self._empty)
        asyncio.run(self._make(workload))
        self.plane.save(self._kept)
        self._made = workload.same_objects()

    async def _make(self, workload: Workload) -> None:
        async with Client(self.plane.kubeconfig()) as client:
            for step in workload.standing():
                await client.create_all(step)
            if not workload.rate:
                await client.create_all(workload.measured_pods())

    def fresh(self) -> None:
        """Restart the API server on the kept data."""
        self.plane.restore(self._kept)


SERVING_GROUPS: Final = (f"--feature-gates={GATE}", "--runtime-config=scheduling.k8s.io/v1beta1=true")
"""Flags with which the API server serves pod groups."""


@contextmanager
def control_plane(*, groups: bool = False) -> Iterator[State]:
    """Run etcd and the API server with temporary data, in memory if possible.

    Args:
        groups: Whether the API server serves pod groups.
    """
    before, place = tempfile.tempdir, SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="policysched-bench-", dir=place) as folder:
        policy = Path(folder) / "audit.yaml"
        policy.write_text(yaml.safe_dump(AUDIT), "utf-8")
        flags = [f"--disable-admission-plugins={ADMISSION}", f"--audit-policy-file={policy}"]
        flags += SERVING_GROUPS if groups else ()
        only = ("serviceaccount-controller",)
        tempfile.tempdir = folder
        try:
            with ControlPlane(controllers=only, kubelets=False, apiserver_flags=flags) as plane:
                yield State(plane)
        finally:
            tempfile.tempdir = before
