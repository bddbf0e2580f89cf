"""A day and a half of a cluster with everything on, in simulated time.

    python -m bench.soak [--hours 36] [--nodes 5000] [--takeover-every 3] [--minutes 120] [-o json] [--publish NAME]

The scheduler process runs in this process, without HTTP; the API server is the sandbox's storage with its kubelets and
controllers. Processor time passes as in real time, idle time is skipped. The run has 20 policies with filters and
scores and an edit of a policy every 15 minutes, every fourth of which does not compile; pods with device claims; gangs
of 2 to 64 pods, half of them in one rack or zone; priorities and PodDisruptionBudgets; nodes that are added, drained,
tainted and relabelled; waves of batch pods; and a second process that takes over every three hours, after an orderly
end of the first or in the middle of a wave after a crash. The load is proportional to the number of nodes.

The table has one row for each hour. Milliseconds of attempts are processor time from the pop of a pod to the start of
its binding; "bind" is the simulated time from the creation of a pod to its binding, for pods that the first attempt
placed. Memory is that of the whole process, with the API server. A run fails if a pod is lost or bound twice, if a new
leader knows something else than the last, if anything is left after all pods are deleted, or if memory grows.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.arguments import make_parser
from bench.soak.clock import SimulatedLoop
from bench.soak.figures import HEADS, as_markdown, remarks, rows
from bench.soak.run import Options, play
from policysched.app.dry_run.tables import plain_table
from policysched.cli.rich_output import print_parts

RESULTS: Final = Path(__file__).resolve().parents[1] / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play a run and print the figures; return 1 if a check fails."""
    parser = make_parser("bench.soak", __doc__)
    parser.add_argument("--hours", type=float, default=36.0, help="simulated hours")
    parser.add_argument("--takeover-every", type=float, default=3.0, help="hours between two takeovers")
    parser.add_argument("--minutes", type=float, default=120.0, help="longest duration of the run in real time")
    parser.add_argument("--seed", type=int, default=7, help="seed of the load")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="format of the output")
    parser.add_argument("--publish", metavar="NAME", help="write bench/results/NAME.md and NAME.json")
    given = parser.parse_args(arguments)
    logging.getLogger("policysched").setLevel(logging.ERROR)
    options = Options(given.nodes, given.hours, given.takeover_every, given.minutes, given.seed)
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        found = runner.run(play(options, _say))
    if given.publish:
        publish(found, given.publish)
    if given.output == "json":
        print(msgspec.json.encode(found).decode())
    else:
        hours = found["hours"]
        print_parts([plain_table(f"{len(hours)} simulated hours", HEADS, rows(hours), range(len(HEADS)))])
        print("\n".join(remarks(found)))
    return 1 if found["problems"] else 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def publish(found: Mapping[str, Any], name: str) -> None:
    """Write the figures into bench/results/."""
    (RESULTS / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    (RESULTS / f"{name}.md").write_text(as_markdown(found), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
