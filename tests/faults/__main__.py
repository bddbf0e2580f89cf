"""Plays faults of servers, networks and neighbours against schedulers on a real control plane: `make faults`.

    python -m tests.faults [--scheduler policysched|kube-scheduler|both] [--fault NAME …] [--short] [-o json]

Each fault comes in the middle of pods that fill the nodes exactly, and is followed by the same questions: whether each
pod is bound exactly once, the state is that of a fresh list, and memory is back. Both schedulers take about 20 minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from policysched.cli.output import print_parts
from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import DEFINITION
from tests.faults.faults import FAULTS, Fault
from tests.faults.playing import play
from tests.faults.report import as_json, table
from tests.faults.scene import LONG, SHORT, Outcome
from tests.faults.schedulers import NAMES

CONTROLLERS = ("serviceaccount-controller", "namespace-controller")
BOTH = "both"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the faults and print what came of them; the exit code is 0 if policysched came well through all."""
    given = _parser().parse_args(arguments)
    chosen = [one for one in FAULTS if not given.fault or any(text in one.name for text in given.fault)]
    if not chosen:
        sys.stderr.write(f"no such fault; there are: {', '.join(one.name for one in FAULTS)}\n")
        return 2
    names = NAMES if given.scheduler == BOTH else (given.scheduler,)
    outcomes = list(_outcomes(chosen, names, short=given.short))
    if given.output == "json":
        sys.stdout.write(as_json(outcomes) + "\n")
    else:
        print_parts([table(outcomes)])
    shares = {one.name for one in FAULTS if one.shares}
    ours = [one for one in outcomes if one.scheduler == NAMES[0]]
    return int(not all(one.holds(shares=one.fault in shares) for one in ours))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=main.__doc__)
    parser.add_argument("--scheduler", choices=(*NAMES, BOTH), default=NAMES[0])
    parser.add_argument("--fault", action="append", metavar="NAME", help="a part of its name; may be repeated")
    parser.add_argument("--short", action="store_true", help=f"{SHORT.pods} pods instead of {LONG.pods}")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser


def _outcomes(chosen: Sequence[Fault], names: Sequence[str], *, short: bool) -> Iterator[Outcome]:
    began = time.monotonic()
    with ControlPlane(controllers=CONTROLLERS, kubelets=False) as plane:
        plane.load([DEFINITION])
        for fault in chosen:
            for name in names:
                outcome = play(fault, name, plane, SHORT if short else LONG)
                right = "right" if outcome.holds(shares=fault.shares) else "WRONG"
                sys.stderr.write(f"{time.monotonic() - began:5.0f} s  {fault.name}: {name}: {right}\n")
                sys.stderr.flush()
                yield outcome


if __name__ == "__main__":
    sys.exit(main())
