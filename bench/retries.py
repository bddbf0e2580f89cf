"""Attempts for pods that no event can help, beside kube-scheduler.

kube-scheduler and policysched run in turn, each in a fresh process with the default plugins, on a real API server.
Pods of five kinds are rejected. Then events that help none of them occur: ordinary pods created and deleted, new
nodes with a taint, changed labels of nodes, pods and namespaces. Measured are attempts per pod and processor time.

    python -m bench.retries [--waiting 20] [--rounds 20] [-o json]

Requires the Kubernetes programs that `make test` builds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.hostile import cpu_ms
from policysched.app.dry_run.tables import plain_table
from policysched.cli.rich_output import print_parts
from tests.controlplane.api import Api
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.controlplane.programs import Program, Warden
from tests.e2e.objects import Json, node, pod
from tests.requeueing.control_plane import KubeScheduler, Move, bare_plane, moves_in

ROOT = Path(__file__).resolve().parent.parent
ME = "default-scheduler"
HOST = "kubernetes.io/hostname"
NODES = 4
SETTLING = 3.0
"""Wait after the last change, in which pending retries happen. Units: seconds."""
PATIENCE = 120.0
"""Longest wait for the rejections. Units: seconds."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one scheduler.

    Units: attempts per waiting pod, by kind; seconds of processor time.
    """

    scheduler: str
    attempts: dict[str, float] = field(default_factory=dict)
    cpu_seconds: float = 0.0


def _term(selected: Json, domain: str = HOST, **fields: Any) -> Json:
    return {"labelSelector": {"matchLabels": selected}, "topologyKey": domain} | fields


def _affinity(sort: str, *terms: Json) -> Json:
    return {sort: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


GOLD: Json = {"namespaceSelector": {"matchLabels": {"tier": "gold"}}}
KINDS: dict[str, Json] = {
    "requests more CPU than any node has": {"requests": {"cpu": "100"}},
    "requires an absent pod (namespaceSelector)": {
        "affinity": _affinity("podAffinity", _term({"app": "absent"}, **GOLD))
    },
    "has anti-affinity to two kinds of pods": {
        "affinity": _affinity("podAntiAffinity", _term({"app": "guard"}), _term({"app": "visitor"}))
    },
    "matches the anti-affinity of placed pods": {"labels": {"avoided": "yes"}},
    "requires a topology label that no node has": {
        "labels": {"group": "g"},
        "affinity": _affinity("podAffinity", _term({"group": "g"}, "rack")),
    },
}
GUARD: Json = {"labels": {"app": "guard"}, "affinity": _affinity("podAntiAffinity", _term({"avoided": "yes"}))}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the schedulers and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.retries", description="Count attempts for pods that no event can help."
    )
    parser.add_argument("--waiting", type=int, default=20, help="pods of each kind")
    parser.add_argument("--rounds", type=int, default=20, help="number of rounds")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="format of the output")
    given = parser.parse_args(arguments)
    with bare_plane() as plane:
        outcomes = [
            measure(name, start, plane, given.waiting, given.rounds)
            for name, start in (("kube-scheduler", _kube_scheduler), ("policysched", _policysched))
        ]
    if given.output == "json":
        print(json.dumps([asdict(one) for one in outcomes], indent=2))
    else:
        report(outcomes, given.waiting, given.rounds)


class Policysched:
    """A policysched process that logs every move of a pod in the queue."""

    def __init__(self, plane: ControlPlane) -> None:
        self._warden = Warden(plane.logs)
        start = "from policysched.cli import main; main()"
        command = [sys.executable, "-c", start, "run", f"--kubeconfig={plane.kubeconfig()}", "--v=5"]
        self.program = Program(
            "policysched", [*command, f"--scheduler-name={ME}"], plane.logs / "policysched.log", self._warden
        )
        self.program.environment["PYTHONPATH"] = str(ROOT)

    def __enter__(self) -> Policysched:
        self.program.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.program.stop()
        self._warden.dismiss()

    def moves(self) -> list[Move]:
        """Return the moves of pods so far."""
        log = self.program.log
        return list(moves_in(log.read_text("utf-8", "replace").splitlines())) if log.exists() else []


def _policysched(plane: ControlPlane) -> Policysched:
    return Policysched(plane)


def _kube_scheduler(plane: ControlPlane) -> KubeScheduler:
    profiles = [{"schedulerName": ME}]
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return KubeScheduler(plane, head | {"profiles": profiles})


def measure(name: str, start: Callable[[ControlPlane], Any], plane: ControlPlane, waiting: int, rounds: int) -> Outcome:
    """Run one scheduler with waiting pods, make changes, and return the attempts for each pod."""
    print(name, file=sys.stderr, flush=True)
    api = plane.api
    for number in range(NODES):
        api.create(node(f"n{number}"))
        api.create(pod(f"guard-{number}", nodeName=f"n{number}", **GUARD))
    names = {f"w{kind}-{number}": text for kind, text in enumerate(KINDS) for number in range(waiting)}
    with start(plane) as scheduler:
        for one, text in names.items():
            api.create(pod(one, scheduler=ME, **KINDS[text]))
        until(lambda: _turned_away(scheduler.moves()) >= names.keys(), "all pods turned away", PATIENCE)
        before = _attempts(scheduler.moves(), names)
        for number in range(rounds):
            for _ in happen(api, number):
                time.sleep(0.1)
        time.sleep(SETTLING)
        after = _attempts(scheduler.moves(), names)
        cpu = cpu_ms(scheduler.program.pid) / 1000
    plane.wipe()
    return Outcome(name, {text: (after[text] - before[text]) / waiting for text in KINDS}, cpu)


def happen(api: Api, number: int) -> Iterator[None]:
    """Make several changes that help no waiting pod, and yield after each change."""
    home = f"n{number % NODES}"
    visitor: Json = {"labels": {"app": "visitor"}}
    api.create(pod(f"ordinary-{number}", scheduler=ME))
    yield
    api.create(pod(f"visitor-{number}", nodeName=home, **visitor))
    yield
    api.patch("Namespace", "default", {"metadata": {"labels": {"tier": "gold", "round": str(number)}}}, "")
    yield
    api.create(node(f"late-{number}", taints=[{"key": "closed", "effect": "NoSchedule"}]))
    yield
    api.patch("Node", home, {"metadata": {"labels": {"round": str(number)}}}, "")
    yield
    api.patch("Pod", f"visitor-{number}", {"metadata": {"labels": {"round": str(number)}}})
    yield
    api.delete("Pod", f"visitor-{number}", gracePeriodSeconds=0)
    yield
    api.delete("Pod", f"ordinary-{number}", gracePeriodSeconds=0)
    yield
    api.delete("Node", f"late-{number}")
    yield


def _turned_away(moves: Sequence[Move]) -> set[str]:
    return {name for name, _, event in moves if event == "ScheduleAttemptFailure"}


def _attempts(moves: Sequence[Move], names: dict[str, str]) -> Counter[str]:
    return Counter(names[name] for name, _, event in moves if event == "ScheduleAttemptFailure" and name in names)


def report(outcomes: Sequence[Outcome], waiting: int, rounds: int) -> None:
    """Print one line for each kind of pod."""
    heads = ["attempts per pod that", *(one.scheduler for one in outcomes)]
    rows = [[text, *(f"{one.attempts[text]:.1f}" for one in outcomes)] for text in KINDS]
    rows.append(["CPU of the scheduler, s", *(f"{one.cpu_seconds:.1f}" for one in outcomes)])
    print_parts([plain_table(None, heads, rows, range(1, len(heads)))])
    print(f"{rounds} rounds of 9 events that help no pod; {waiting} waiting pods of each kind")


if __name__ == "__main__":
    main()
