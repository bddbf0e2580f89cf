"""`policysched` as it is, in a process that tells its state on SIGUSR2, as kube-scheduler does, and whose clock jumps.

    python -m tests.faults.observed FOLDER run …

The state goes to FOLDER/state.json. FOLDER/clock, where it is there, holds the seconds by which the wall clock is off,
read anew at each question; the monotonic clock is not touched, as on a machine whose time is set.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from policysched.app.clock import SystemClock
from policysched.app.running import run
from policysched.app.running.process import Process
from policysched.cli import main
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.queued_pod_group import QueuedPodGroup


class Observed(Process):
    """A scheduler that writes down what it knows when it is asked."""

    folder = Path()

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, self.tell)

    def tell(self) -> None:
        """Write the state between two cycles, as a whole."""
        draft = self.folder / "state.draft"
        draft.write_text(json.dumps(self.state()), "utf-8")
        draft.rename(self.folder / "state.json")

    def state(self) -> dict[str, Any]:
        """Give the UIDs of placed pods and what they request, by node, and the UIDs of pending pods."""
        nodes, pods = self.scheduler.cluster.nodes, self.scheduler.cluster.pods
        cpu = nodes.requested("cpu")
        placed = {name: [one.pod.metadata.uid for one in pods.on_row(row)] for name, row in nodes.row_of.items()}
        queues = self.scheduler.queue._queues
        waiting = (queues._active, queues._backing_off, queues._completing, queues.waiting)
        return {
            "placed": placed,
            "cpu": {name: int(cpu[row]) for name, row in nodes.row_of.items()},
            "nodes": [name for name, row in nodes.row_of.items() if nodes.present.data[row]],
            "pending": [pod.identity for several in waiting for one in several for pod in _pods(one)],
        }


def _pods(queued: QueuedPod) -> Sequence[QueuedPod]:
    """Give the pods of what is queued: a pod, or a group with its members."""
    return queued.members if isinstance(queued, QueuedPodGroup) else [queued]


def jump_with(file: Path) -> None:
    """Have the wall clock be off by what a file says."""
    real = time.time

    def offset() -> float:
        with contextlib.suppress(OSError, ValueError):
            return float(file.read_text("utf-8"))
        return 0.0

    def now(_: SystemClock) -> datetime:
        return datetime.fromtimestamp(real(), UTC) + timedelta(seconds=offset())

    SystemClock.now = now  # type: ignore[assignment,method-assign]
    time.time = lambda: real() + offset()


if __name__ == "__main__":
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    Observed.folder = Path(sys.argv.pop(1))
    jump_with(Observed.folder / "clock")
    run.Process = Observed  # type: ignore[assignment,attr-defined]
    main()
