"""Events of the measured pods from the API server's audit log, and processor time meanwhile.

The audit log has the times of creation, binding and stored event, by the same clock for every scheduler. Units:
seconds since 1970 for points in time, seconds of processor time.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from pathlib import Path

import msgspec

from bench.cluster.machine import cpu_of, cpu_of_all

Name = tuple[str, str]
"""Namespace and name of a pod."""


class _Reference(msgspec.Struct):
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Line(msgspec.Struct):
    objectRef: _Reference  # noqa: N815 - the API's name
    responseStatus: _Status  # noqa: N815
    stageTimestamp: datetime  # noqa: N815
    requestReceivedTimestamp: datetime  # noqa: N815


_decode = msgspec.json.Decoder(_Line).decode


@dataclass(frozen=True, slots=True)
class Sample:
    """Processor times used until a point in time. Units: seconds."""

    at: float
    scheduler: float
    servers: float
    all: float
    bench: float


@dataclass(slots=True)
class Observation:
    """The times of creation, binding and event of the measured pods."""

    pods: Collection[Name]
    created: dict[Name, float] = field(default_factory=dict)
    bound: dict[Name, float] = field(default_factory=dict)
    told: dict[Name, float] = field(default_factory=dict)
    """Time when the first event after a pod's binding was stored, by pod."""
    sent: dict[Name, float] = field(default_factory=dict)
    """Time when the API server received a pod's successful binding, by pod; nearly in the order of decisions."""
    samples: list[Sample] = field(default_factory=list)

    def take(self, lines: Collection[bytes]) -> None:
        """Record creations, bindings and events from lines of the audit log."""
        for line in lines:
            found = _decode(line)
            if found.responseStatus.code != HTTPStatus.CREATED:
                continue
            of, at = found.objectRef, found.stageTimestamp.timestamp()
            if of.resource == "events":
                self._tell((of.namespace, of.name.rpartition(".")[0]), at)
            elif (pod := (of.namespace, of.name)) in self.pods:
                if of.subresource == "binding":
                    self.bound[pod], self.sent[pod] = at, found.requestReceivedTimestamp.timestamp()
                else:
                    self.created[pod] = at

    def _tell(self, pod: Name, at: float) -> None:
        if pod in self.pods and pod not in self.told and self.bound.get(pod, at) < at:
            self.told[pod] = at

    def sample(self, scheduler: int, servers: Collection[int]) -> None:
        """Append a sample of the processor times of the scheduler and the servers."""
        used = sum(map(cpu_of, servers))
        self.samples.append(Sample(time.time(), cpu_of(scheduler), used, cpu_of_all(), time.process_time()))

    def until(self, end: float) -> None:
        """Discard bindings and events after a point in time."""
        for of in (self.bound, self.told):
            for pod in [pod for pod, at in of.items() if at > end]:
                del of[pod]


class Tail:
    """A reader of the complete lines of a growing file."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def read(self) -> list[bytes]:
        """Return the complete lines since the last call; none if the file does not exist yet."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            found = file.read()
        whole = found[: found.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.splitlines()
