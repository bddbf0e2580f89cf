"""Plays Kubernetes' own scheduling specs against a scheduler: `python -m tests.conformance_suite`.

Everything but the kubelets is real: etcd, kube-apiserver, kube-controller-manager, and the specs, which are Kubernetes'
own code. The scheduler under test takes kube-scheduler's place under the name `default-scheduler`. All of them take
about nine minutes; five of these one spec waits. The logs and a JUnit report stay in the folder that is printed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tests.conformance_suite import build, cluster
from tests.conformance_suite.report import Spec, read, table
from tests.controlplane.build import binary
from tests.controlplane.commands import POD_GROUPS, enabled
from tests.controlplane.golang import cache_root
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane


class Suite(NamedTuple):
    """Specs that belong together, as regular expressions: those to play, and those of them to skip."""

    focus: str
    skip: str = "GenericWorkload|DRAResourcePoolStatus"
    """By default, specs of features that are not there by default."""
    gates: tuple[str, ...] = ()
    """The feature gates of all programs."""


SUITES: Final = {
    "scheduling": Suite(r"\[sig-scheduling\]"),
    "devices": Suite(r"\[DRA\] control plane"),
    "groups": Suite(r"\[sig-scheduling\].*GenericWorkload", "TopologyAware|CompositePodGroup", (POD_GROUPS,)),
}
"""Specs of devices need no kubelet; specs of pod groups need the feature gate and its API."""
SCHEDULERS: Final = ("policysched", "kube-scheduler")


def main() -> int:
    """Play the specs and print what became of them; the exit code is 0 if all passed."""
    told = _arguments()
    output = told.output or cache_root() / "e2e" / told.scheduler
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    build.binary()
    _say(f"{told.scheduler}, seed {told.seed}; logs in {output}")
    suite = SUITES[told.suite]
    with ControlPlane(controllers=("*",), gates=suite.gates) as plane:
        plane.load(cluster.nodes())
        plane.start("scheduler", [*_scheduler(told.scheduler, plane), *enabled(suite.gates)])
        plane.load(cluster.system_pods())
        until(lambda: _all_run(plane), "the pods of the system run")
        specs = _play(plane, suite._replace(focus=told.focus or suite.focus), told.seed, output)
        shutil.copytree(plane.logs, output, dirs_exist_ok=True)
    _say(f"\n{table(specs)}")
    return 0 if specs and all(spec.passed for spec in specs) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance_suite", description=main.__doc__)
    parser.add_argument("--scheduler", choices=SCHEDULERS, default=SCHEDULERS[0])
    parser.add_argument("--suite", choices=SUITES, default="scheduling", help="the specs to play")
    parser.add_argument("--focus", help="a regular expression: the specs to play instead")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="their order")
    parser.add_argument("--output", type=Path, help="the folder for logs; what is in it goes")
    return parser.parse_args()


def _scheduler(name: str, plane: ControlPlane) -> list[str | Path]:
    """Give the command of the scheduler under test."""
    kubeconfig = f"--kubeconfig={plane.kubeconfig()}"
    if name == "kube-scheduler":
        return [binary(name), kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0", "-v=2"]
    program = Path(sys.prefix) / "bin" / "policysched"
    return [program, "run", kubeconfig, "--scheduler-name=default-scheduler"]


def _all_run(plane: ControlPlane) -> bool:
    return all(pod["status"].get("phase") == "Running" for pod in plane.objects("Pod", "kube-system"))


def _play(plane: ControlPlane, suite: Suite, seed: int, output: Path) -> list[Spec]:
    """Run the specs' program, with a line for each as it ends."""
    command = [
        str(build.binary()),
        f"--kubeconfig={plane.kubeconfig()}",
        "--provider=skeleton",
        "--allowed-not-ready-nodes=0",
        f"--num-nodes={cluster.NODES}",
        "--disable-log-dump",
        f"--ginkgo.focus={suite.focus}",
        f"--ginkgo.skip={suite.skip}",
        f"--ginkgo.seed={seed}",
        f"--ginkgo.junit-report={output / 'junit.xml'}",
        "--ginkgo.v",
    ]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace"
    )
    try:
        assert running.stdout is not None
        return _follow(running.stdout, output / "specs.log")
    finally:
        running.terminate()
        running.wait()


def _follow(lines: Iterable[str], log: Path) -> list[Spec]:
    specs = []
    with log.open("w", encoding="utf-8", buffering=1) as kept:
        for line in lines:
            kept.write(line)
            if (spec := read(line)) is not None:
                specs.append(spec)
                _say(spec.line)
    return specs


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
