"""Plays faults of servers, networks and neighbours against schedulers on a real control plane: `make faults`.

    python -m tests.faults [--scheduler policysched|kube-scheduler|both] [--devices|--groups] [--fault NAME …] [--short]

Each fault comes in the middle of pods that fill the nodes exactly, and is followed by the same questions: whether each
pod is bound exactly once, the state is that of a fresh list, and memory is back. Both schedulers take about 20 minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from policysched.cli.rich_output import print_parts
from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import DEFINITION
from tests.faults import devices, groups
from tests.faults.device_faults import DEVICE_FAULTS
from tests.faults.faults import FAULTS, Fault
from tests.faults.group_faults import GROUP_FAULTS
from tests.faults.playing import play
from tests.faults.report import as_json, table
from tests.faults.scene import LONG, SHORT, Outcome, Size
from tests.faults.schedulers import NAMES
from tests.faults.upgrades import UPGRADES

CONTROLLERS = ("serviceaccount-controller", "namespace-controller")
BOTH = "both"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the faults and print what came of them; the exit code is 0 if policysched came well through all."""
    given = _parser().parse_args(arguments)
    known = DEVICE_FAULTS if given.devices else GROUP_FAULTS if given.groups else (*FAULTS, *UPGRADES)
    chosen = [one for one in known if not given.fault or any(text in one.name for text in given.fault)]
    if not chosen:
        sys.stderr.write(f"no such fault; there are: {', '.join(one.name for one in known)}\n")
        return 2
    names = NAMES if given.scheduler == BOTH else (given.scheduler,)
    size = SHORT if given.short else devices.ALL if given.devices else groups.ALL if given.groups else LONG
    outcomes = list(_outcomes(chosen, names, size))
    if given.output == "json":
        sys.stdout.write(as_json(outcomes) + "\n")
    else:
        print_parts([table(outcomes)])
    shares = {one.name for one in known if one.shares}
    ours = [one for one in outcomes if one.scheduler == NAMES[0]]
    return int(not all(one.holds(shares=one.fault in shares) for one in ours))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=main.__doc__)
    parser.add_argument("--scheduler", choices=(*NAMES, BOTH), default=NAMES[0])
    parser.add_argument("--devices", action="store_true", help="the faults of pods that need devices")
    parser.add_argument("--groups", action="store_true", help="the faults of pod groups")
    parser.add_argument("--fault", action="append", metavar="NAME", help="a part of its name; may be repeated")
    parser.add_argument("--short", action="store_true", help=f"{SHORT.pods} pods instead of {LONG.pods}")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser


def _outcomes(chosen: Sequence[Fault], names: Sequence[str], size: Size) -> Iterator[Outcome]:
    began = time.monotonic()
    [scene] = {one.scene for one in chosen}
    with ControlPlane(controllers=(*CONTROLLERS, *scene.controllers), kubelets=False, gates=scene.gates) as plane:
        plane.load([DEFINITION])
        for fault in chosen:
            for name in names:
                outcome = play(fault, name, plane, size)
                right = "right" if outcome.holds(shares=fault.shares) else "WRONG"
                sys.stderr.write(f"{time.monotonic() - began:5.0f} s  {fault.name}: {name}: {right}\n")
                sys.stderr.flush()
                yield outcome


if __name__ == "__main__":
    sys.exit(main())
