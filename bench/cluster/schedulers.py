"""The compared schedulers: how to start them, and their processor time and memory."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Final

import yaml

from bench.cluster.workloads import ALL_NODES, KUBE, NULL, OURS, UNBATCHED, UNSPREAD
from tests.controlplane.build import binary
from tests.controlplane.plane import ControlPlane
from tests.controlplane.programs import Program, free_port

ROOT: Final = Path(__file__).resolve().parents[2]
DEFAULT: Final = "default-scheduler"
QPS: Final = 5000
"""Limit of kube-scheduler's requests per second, high enough to have no effect."""
GATE: Final = "GenericWorkload=true"
"""The feature gate of pod groups."""


def command(
    name: str, kubeconfig: Path, folder: Path, profile: str = DEFAULT, *, groups: bool = False
) -> list[str | Path]:
    """Return the command that starts a scheduler, after writing kube-scheduler's configuration into the folder.

    Args:
        name: The scheduler.
        kubeconfig: The kubeconfig of the API server.
        folder: The folder for the configuration.
        profile: The `schedulerName` of its pods.
        groups: Whether it schedules pod groups.
    """
    if name == NULL:
        return [sys.executable, "-m", "bench.cluster.null_scheduler", kubeconfig]
    port = f"--secure-port={free_port()}"
    if name == OURS:
        start = "from policysched.cli import main; main()"
        flags = [f"--scheduler-name={profile}", "--leader-elect=false", port, "--bind-address=127.0.0.1"]
        flags += [f"--feature-gates={GATE}"] if groups else []
        return [sys.executable, "-c", start, "run", f"--kubeconfig={kubeconfig}", *flags]
    path = folder / f"kube-scheduler-{profile}.yaml"
    path.write_text(yaml.safe_dump(_configuration(name, kubeconfig, profile)), "utf-8")
    gates = ["OpportunisticBatching=false"] * (name == UNBATCHED) + [GATE] * groups
    given = [f"--feature-gates={','.join(gates)}"] if gates else []
    return [binary(KUBE), f"--config={path}", port, "--bind-address=127.0.0.1", *given]


def _configuration(name: str, kubeconfig: Path, profile: str) -> dict[str, Any]:
    sampled = {"percentageOfNodesToScore": 100} if name == ALL_NODES else {}
    # kube-scheduler reuses a decision for the next pod of the same kind only if no plugin reads other pods.
    spreading = {"plugins": {"multiPoint": {"disabled": [{"name": "PodTopologySpread"}]}}} if name == UNSPREAD else {}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": QPS, "burst": QPS},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": profile, **spreading}],
        **sampled,
    }


class RunningScheduler:
    """One scheduler process; a context manager that starts and stops it."""

    def __init__(self, name: str, plane: ControlPlane, profile: str = DEFAULT, *, groups: bool = False) -> None:
        line = command(name, plane.kubeconfig(), plane.folder, profile, groups=groups)
        log = plane.logs / f"{name.replace(', ', '-').replace(' ', '-')}-{profile}.log"
        self._program = Program(name, line, log, plane.warden)
        self._program.environment["PYTHONPATH"] = str(ROOT)
        self.started = 0.0
        """Start time of the process. Units: seconds since 1970."""

    def __enter__(self) -> RunningScheduler:
        self.started = time.time()
        self._program.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._program.stop()

    @property
    def pid(self) -> int:
        """Process ID."""
        return self._program.pid

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._program.running

    def told(self) -> str:
        """Return the end of the process's log."""
        return self._program.told()
