"""Plays situations on a real API server and reads from the scheduler's log which pods are tried again.

Each list of plugins has its own profile. The log says which event moved a pod to which queue. There are no kubelets,
and no controllers that change the objects of a situation, so that only its steps have effects.
"""

from __future__ import annotations

import http
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import yaml

from tests.controlplane.api import Api, RefusedError
from tests.controlplane.build import binary
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.controlplane.programs import Program, Warden, free_port
from tests.e2e.objects import Json
from tests.requeueing.player import profile
from tests.requeueing.situations import Change, Create, Delete, Situation, Step

CONTROLLERS: Final = ("serviceaccount-controller", "namespace-controller")
ADMISSION: Final = "TaintNodesByCondition,ServiceAccount,StorageObjectInUseProtection,DefaultTolerationSeconds"
"""Admission plugins that are disabled, because they change objects or delay their deletion."""
NEVER: Final = frozenset(("PopFromBackoffQ", "BackoffComplete", "ScheduleAttemptFailure"))
"""Events of moves without a cause in the cluster."""
CALM: Final = 0.3
"""Longest time until a scheduler has processed an event. Units: seconds."""
MOST_CONFLICTS: Final = 20
"""Number of repetitions of a request after a conflict; then the error is raised."""
CONFLICT_PAUSE: Final = 0.1
"""Pause before a request is repeated. Units: seconds."""
T = TypeVar("T")
_MOVED: Final = re.compile(
    r'"(?:Pod|Entity) moved to an internal scheduling queue.*" (?:type="\w+" )?(?:pod|entity)="default/([^"]+)" '
    r'(?:pod="\S+" )?event="([^"]+)" queue="(\w+)"'
)
Move = tuple[str, str, str]
"""Name of a pod, the queue that it entered, and the event."""


def moves_in(lines: Iterable[str]) -> Iterator[Move]:
    """Yield the moves in lines of a log; policysched has the format of 1.36, the kube-scheduler of 1.37 another one."""
    for line in lines:
        if found := _MOVED.search(line):
            yield found[1], found[3].lower(), found[2]


def profile_name(row: Situation) -> str:
    """Return the name of the profile with a situation's plugins."""
    return "-".join(row.plugins).lower()


def configuration_of(rows: Sequence[Situation]) -> Json:
    """Return a KubeSchedulerConfiguration with a profile for each list of plugins."""
    profiles = {profile_name(row): profile(profile_name(row), row.plugins) for row in rows}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles.values()),
    }


def bare_plane() -> ControlPlane:
    """Return a control plane without kubelets and without controllers that change objects."""
    flags = [f"--disable-admission-plugins={ADMISSION}"]
    return ControlPlane(controllers=CONTROLLERS, kubelets=False, apiserver_flags=flags)


class KubeScheduler:
    """A kube-scheduler process with a configuration, which logs every move of a pod."""

    def __init__(self, plane: ControlPlane, configuration: Json, *flags: str) -> None:
        self._warden = Warden(plane.logs)
        path = plane.folder / "kube-scheduler.yaml"
        path.write_text(
            yaml.safe_dump(
                configuration
                | {
                    "clientConnection": {"kubeconfig": str(plane.kubeconfig()), "qps": 1000, "burst": 1000},
                    "leaderElection": {"leaderElect": False},
                }
            )
        )
        command: list[str | Path] = [binary("kube-scheduler"), f"--config={path}", "--v=5"]
        self.port = free_port()
        command += [f"--secure-port={self.port}", "--bind-address=127.0.0.1"]
        command += ["--authorization-always-allow-paths=/healthz,/metrics,/metrics/resources"]
        command += flags
        self.program = Program("kube-scheduler", command, plane.logs / "kube-scheduler.log", self._warden)

    def __enter__(self) -> KubeScheduler:
        self.program.start()
        try:
            self.program.wait(lambda: any("Handlers synced" in line for line in self.lines()))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.program.stop()
        self._warden.dismiss()

    def lines(self) -> list[str]:
        """Return the lines of the log."""
        log = self.program.log
        return log.read_text("utf-8", "replace").splitlines() if log.exists() else []

    def moves(self) -> list[Move]:
        """Return the moves of pods so far."""
        return list(moves_in(self.lines()))


def again_on_conflict(request: Callable[[], T]) -> T:
    """Repeat a request while the server responds with 409, as schedulers and controllers write the same objects."""
    for _ in range(MOST_CONFLICTS):
        try:
            return request()
        except RefusedError as error:
            if error.status != http.HTTPStatus.CONFLICT:
                raise
        time.sleep(CONFLICT_PAUSE)
    return request()


@dataclass(frozen=True, slots=True)
class Found:
    """The pods that a scheduler tried again in a situation, and the events."""

    claim: str
    wakes: frozenset[str]
    events: frozenset[str]


class Stage:
    """Plays situations one after another on an API server, and removes their objects."""

    def __init__(self, api: Api, moves: Callable[[], list[Move]]) -> None:
        self._api, self._moves = api, moves
        self._made: list[tuple[str, str]] = []

    def play(self, row: Situation) -> Found:
        """Play a situation, and return the pods that were tried again and the events."""
        before = len(self._moves())
        for obj in row.given:
            self._create(deepcopy(obj))
        time.sleep(CALM / 2)
        for one in row.waiting:
            self._create(deepcopy(one.pod) | {"spec": one.pod["spec"] | {"schedulerName": profile_name(row)}})
        names = {one.name for one in row.waiting}
        until(lambda: self._turned_away(before) >= names, f"{row.claim}: all turned away")
        told = len(self._moves())
        for step in row.steps:
            self._do(step)
        if row.wakes:
            until(lambda: self._woken(told, row).keys() >= row.wakes, f"{row.claim}: {sorted(row.wakes)} tried again")
        time.sleep(CALM)
        woken = self._woken(told, row)
        self._clean()
        return Found(row.claim, frozenset(woken), frozenset().union(*woken.values()))

    def _turned_away(self, since: int) -> set[str]:
        last = {name: queue for name, queue, _ in self._moves()[since:]}
        return {name for name, queue in last.items() if queue in {"unschedulable", "gated"}}

    def _woken(self, since: int, row: Situation) -> dict[str, set[str]]:
        """Return the pods that moved after the steps, with the events.

        Moves caused by the binding of these pods do not count.
        """
        found: dict[str, set[str]] = {}
        for name, queue, event in self._moves()[since:]:
            later = event.startswith("AssignedPod") and event not in row.events
            if queue in {"active", "backoff"} and event not in NEVER and not later:
                found.setdefault(name, set()).add(event)
        return found

    def _create(self, obj: Json) -> None:
        made = again_on_conflict(lambda: self._api.create(obj))  # an object of this name may still be deleted
        self._made.append((obj["kind"], obj["metadata"]["name"]))
        if obj["kind"] == "Node" and made["spec"].get("taints", []) != obj["spec"].get("taints", []):
            raise AssertionError(f"somebody taints nodes: {made['spec']}")

    def _do(self, step: Step) -> None:
        match step:
            case Create(obj):
                self._create(deepcopy(obj))
            case Change(kind, name, edit, part):
                again_on_conflict(lambda: self._change(kind, name, edit, part))
            case Delete(kind, name):
                self._api.delete(kind, name, gracePeriodSeconds=0)

    def _change(self, kind: str, name: str, edit: Callable[[Json], None], part: str) -> None:
        changed = self._api.get(kind, name)
        edit(changed)
        self._api.call("PUT", self._api.kind(kind).path("default", name) + part, changed)

    def _clean(self) -> None:
        for kind, name in reversed(self._made):
            try:
                self._api.delete(kind, name, gracePeriodSeconds=0)
            except RefusedError as error:
                if error.status != 404:
                    raise
        self._made.clear()
        time.sleep(CALM / 2)
