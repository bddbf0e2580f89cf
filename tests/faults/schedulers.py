"""A scheduler under test: its command, its process, which is started again where it ends, and what it says it knows.

kube-scheduler writes its cache and its queue into its log on SIGUSR2; policysched is started so that it does alike.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGUSR2, Signals
from typing import Final

from tests.controlplane.build import binary
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.controlplane.programs import Program

NAMES: Final = ("policysched", "kube-scheduler")
NAME: Final = "default-scheduler"
"""The schedulerName of pods of the scheduler under test."""
SHORT_LEASE: Final = (
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=500ms",
    "--leader-elect-resource-name=faults",
)
_RATE: Final = ("--kube-api-qps=5000", "--kube-api-burst=5000")
_MIB: Final = 1024**2


@dataclass(frozen=True, slots=True)
class State:
    """What a scheduler knows, or ought to.

    Units: thousandths of a core.
    """

    placed: dict[str, frozenset[str]] = field(default_factory=dict)
    """The UIDs of the pods on each node that has any."""
    cpu: dict[str, int] = field(default_factory=dict)
    """What is requested on these nodes."""
    pending: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    """The nodes that there are; pods may be on one that is gone."""

    def differences(self, other: State) -> int:
        """Count nodes and pending pods of which the two differ."""
        names = self.nodes | other.nodes | self.placed.keys() | other.placed.keys()
        apart = sum(
            self.placed.get(name, frozenset()) != other.placed.get(name, frozenset())
            or self.cpu.get(name, 0) != other.cpu.get(name, 0)
            or (name in self.nodes) != (name in other.nodes)
            for name in names
        )
        return apart + len(self.pending ^ other.pending)


def command(name: str, kubeconfig: Path, folder: Path, *more: str, elects: bool) -> list[str]:
    """Give the start command of a scheduler, with further flags that both take."""
    flags = [f"--kubeconfig={kubeconfig}", "--secure-port=0", *more]
    flags += ["--leader-elect=true", *SHORT_LEASE] if elects else ["--leader-elect=false"]
    if name == "kube-scheduler":
        return [str(binary(name)), *flags, "--bind-address=127.0.0.1", *_RATE]
    return [sys.executable, "-m", "tests.faults.observed", str(folder), "run", f"--scheduler-name={NAME}", *flags]


class UnderTest:
    """One scheduler process that is kept running, as a kubelet would; a context manager.

    Args:
        name: Which scheduler.
        plane: The control plane whose folder of logs has its log.
        kubeconfig: How it reaches the API server.
        flags: Further flags.
        elects: Whether it takes part in an election.
        muted: Whether it writes its log to a disk that is full.
        tree: The files of another version of policysched; None for this version.
    """

    def __init__(
        self,
        name: str,
        plane: ControlPlane,
        kubeconfig: Path,
        *flags: str,
        elects: bool = False,
        muted: bool = False,
        tree: Path | None = None,
    ) -> None:
        self.name = name
        self.restarts = 0
        self.is_kept = True
        """Whether it is started again where it ends."""
        self._folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=plane.folder))
        line = command(name, kubeconfig, self._folder, *flags, elects=elects)
        if muted:
            line = ["sh", "-c", 'exec "$@" >/dev/full 2>&1', "sh", *line]
        if tree is not None:
            line = ["sh", "-c", 'cd "$0" && exec "$@"', str(tree), *line]
        self.can_tell = not muted or name == "policysched"
        """Whether what it knows can be asked."""
        self._program = Program(name, line, plane.logs / f"{self._folder.name}.log", plane.warden)
        if tree is not None:
            self._program.environment["PYTHONPATH"] = str(tree)

    def __enter__(self) -> UnderTest:
        self._program.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._program.running:
            self.signal(SIGCONT)
        self._program.stop()

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._program.running

    @property
    def log(self) -> str:
        """What it has logged."""
        return self._program.log.read_text("utf-8", "replace")

    def leads(self) -> bool:
        """Whether its log says that it was elected."""
        return "successfully acquired lease" in self.log.lower()

    def revive(self) -> None:
        """Start it again where it has ended and is kept."""
        if self.is_kept and not self._program.running:
            self._program.stop()
            self._program.start()
            self.restarts += 1

    def restart(self) -> None:
        """Kill it and start it again."""
        self._program.stop(SIGKILL)
        self._program.start()
        self.restarts += 1

    def signal(self, number: Signals) -> None:
        """Send a signal; SIGSTOP and SIGCONT have it stand still for a while."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._program.pid, number)

    def end(self, number: Signals) -> None:
        """End it for good."""
        self.is_kept = False
        self._program.stop(number)

    def memory_mib(self) -> float:
        """Give its resident memory."""
        return self._status("VmRSS")

    def limit_memory(self, more_mib: float | None) -> None:
        """Let it have so much more address space than it has, or as much as it likes. Units: MiB."""
        no = resource.RLIM_INFINITY
        most = no if more_mib is None else int((self._status("VmSize") + more_mib) * _MIB)
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(self._program.pid, resource.RLIMIT_AS, (most, no))

    def set_clock(self, seconds: float) -> None:
        """Have its wall clock be off by so much."""
        assert self.name == "policysched", "a program of Go asks the kernel itself"
        (self._folder / "clock").write_text(str(seconds), "utf-8")

    def _status(self, field_name: str) -> float:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{self._program.pid}/status").read_text("utf-8").splitlines()
            return next((int(one.split()[1]) / 1024 for one in lines if one.startswith(field_name)), 0.0)
        return 0.0

    def _hears(self, number: Signals) -> bool:
        """Whether it has a handler for a signal."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self._program.pid}/status").read_text("utf-8").splitlines():
                if line.startswith("SigCgt:"):
                    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
        return False

    def state(self) -> State | None:
        """Ask it what it knows; None where it has no way to say so, or has ended meanwhile."""
        # One that has just begun would be ended by the signal.
        if not self.can_tell or not self._hears(SIGUSR2):
            return None
        return self._told() if self.name == "policysched" else self._dumped()

    def _told(self) -> State | None:
        file = self._folder / "state.json"
        file.unlink(missing_ok=True)
        self.signal(SIGUSR2)
        try:
            until(lambda: file.exists() or not self.running, "the state is written", 10)
        except AssertionError:
            return None
        if not file.exists():
            return None
        told = json.loads(file.read_text("utf-8"))
        placed = {name: frozenset(each) for name, each in told["placed"].items() if each}
        return State(placed, _of(told["cpu"], placed), frozenset(told["pending"]), frozenset(told["nodes"]))

    def _dumped(self) -> State | None:
        start = len(self.log)
        self.signal(SIGUSR2)
        end = time.monotonic() + 10
        while (found := read_dump(self.log[start:])) is None and time.monotonic() < end and self.running:
            time.sleep(0.02)
        return found


def _of(cpu: dict[str, int], placed: dict[str, frozenset[str]]) -> dict[str, int]:
    return {name: amount for name, amount in cpu.items() if name in placed}


_DUMP: Final = re.compile(
    r'"Dump of cached NodeInfo" nodes=(.*?)\n[IWEF]\d{4} .*?"Dump of scheduling queue"(.*)', re.DOTALL
)
_UID: Final = re.compile(r"\buid: ([0-9a-f-]{36})")
_CPU: Final = re.compile(r"Requested Resources: &\{MilliCPU:(\d+)")


def read_dump(log: str) -> State | None:
    """Read what kube-scheduler wrote on SIGUSR2; None where that is not whole yet."""
    found = _DUMP.search(log)
    if found is None or not (found[2].rstrip().endswith(">") or 'pods=""' in found[2]):
        return None
    placed, cpu, names = {}, {}, set()
    for part in found[1].split("Node name: ")[1:]:
        name = part.split()[0]
        if "Deleted: false" in part:
            names.add(name)
        own, _, _ = part.partition("Nominated Pods(")
        if uids := frozenset(_UID.findall(own)):
            placed[name] = uids
            cpu[name] = sum(map(int, _CPU.findall(own)))
    return State(placed, cpu, frozenset(_UID.findall(found[2])), frozenset(names))
