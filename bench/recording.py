"""Cost of `--record` per pod: the scheduler of `policysched run` on an API server in memory.

Timed are all calls of the recorder in the scheduler's thread (decisions, changes of the cluster, changes of policies)
and its writing thread. Times are processor time of each thread. Prints a table.

    python -m bench.recording [--nodes 5000] [--pods 1000] [--policies 20]
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.arguments import make_parser
from bench.loop import Users, node, pod, policy
from policysched.app.demo.scheduled_sandbox import scheduled_sandbox
from policysched.app.dry_run.tables import plain_table
from policysched.app.recording.recorder import Recorder
from policysched.app.recording.writer import RecordWriter
from policysched.app.running.run_options import RunOptions
from policysched.cli.rich_output import print_parts


class Taken:
    """Processor time of functions, by description. Units: seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}

    @contextmanager
    def timing(self, of: type, name: str, what: str) -> Iterator[None]:
        """Measure a method during the block."""
        method: Callable[..., Any] = getattr(of, name)

        def timed(*given: Any) -> Any:
            begin = time.thread_time()
            try:
                return method(*given)
            finally:
                self.seconds[what] = self.seconds.get(what, 0.0) + time.thread_time() - begin
                self.calls[what] = self.calls.get(what, 0) + 1

        setattr(of, name, timed)
        try:
            yield
        finally:
            setattr(of, name, method)

    def clear(self) -> None:
        """Discard all times."""
        self.seconds.clear()
        self.calls.clear()


async def measure(nodes: int, pods: int, policies: int, folder: Path, taken: Taken) -> None:
    """Place pods while a record is written."""
    objects, options = [node(number) for number in range(nodes)], RunOptions(record=folder)
    async with scheduled_sandbox(objects, options, kubelet_seconds=None) as on:
        for number in range(policies):
            await on.apply(policy(number))
        users = Users(on.sandbox, on.api)
        await users.create(pod(number, f"first-{number}") for number in range(50))
        await users.until(lambda: users.settled("first-", placed=True), "the first pods")
        taken.clear()
        await users.create(pod(number, f"pod-{number}") for number in range(pods))
        await users.until(lambda: users.settled("pod-", placed=True), "the pods")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    parser = make_parser("bench.recording", __doc__)
    parser.add_argument("--pods", type=int, default=1000, help="number of pods")
    parser.add_argument("--policies", type=int, default=20, help="number of policies")
    given = parser.parse_args(arguments)
    logging.getLogger("policysched").setLevel(logging.ERROR)
    taken = Taken()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        stack.enter_context(taken.timing(Recorder, "on_decision", "decisions, with their digests"))
        stack.enter_context(taken.timing(Recorder, "_changed", "changes of the cluster"))
        stack.enter_context(taken.timing(RecordWriter, "_take", "writing, in a thread of its own"))
        asyncio.run(measure(given.nodes, given.pods, given.policies, Path(name), taken))
        size = sum(path.stat().st_size for path in Path(name).iterdir())
    rows = [
        [what, f"{taken.calls[what] / given.pods:.1f}", f"{1e6 * seconds / given.pods:.0f}"]
        for what, seconds in taken.seconds.items()
    ]
    title = f"Recording {given.pods:,} pods on {given.nodes:,} nodes with {given.policies} policies"
    print_parts([plain_table(title, ("what", "a pod", "µs of the processor a pod"), rows, range(1, 3))])
    print(f"the files have {size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
