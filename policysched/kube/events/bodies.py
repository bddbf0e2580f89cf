"""Bodies of events.k8s.io/v1 events as bytes, and the grouping of repeated events into series.

A repeated event continues the series of the first one; only some repetitions are written to the API server.

Source: client-go/tools/events/event_recorder.go (makeEvent), event_broadcaster.go (refreshTime, finishTime);
k8s.io/kubernetes/pkg/apis/core/validation/events.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from policysched.framework import Event, PolicyEvent
from policysched.model.objects import Pod, PodGroup
from policysched.model.policy import API_VERSION, KIND
from policysched.visible import cut_bytes, visible

NOTE_LIMIT = 1024
"""Largest length of an event's note. Units: bytes."""
NAME_LIMIT = 253
_SUFFIX = " ..."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


POD, POD_GROUP = "Pod", "PodGroup"
API_VERSIONS = {POD: "v1", POD_GROUP: "scheduling.k8s.io/v1beta1", KIND: API_VERSION}
"""API versions of the objects of events, by kind."""
CONTROLLER = "policysched"
"""Reporting controller of events about policies, which belong to no scheduler name."""
NO_NAMESPACE = "default"


class EventContent(NamedTuple):
    """The data of an event, copied because objects are large and can be deleted before the event is written."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    controller: str
    type: str
    reason: str
    action: str
    note: str
    """Text of the event, cut to the API server's limit."""
    at: datetime
    related: tuple[str, str, str, str, str] | None = None
    """Another object to which the event refers: namespace, name, UID and resourceVersion."""
    kind: str = POD
    """Kind of the event's object: Pod, or SchedulingPolicy, which has no namespace."""

    @property
    def written_in(self) -> str:
        """The namespace in which the event is written; `default` for an object without a namespace."""
        return self.namespace or NO_NAMESPACE

    @classmethod
    def of(cls, event: Event | PolicyEvent) -> EventContent:
        """Copy the data of an event."""
        if isinstance(event, PolicyEvent):
            of = event.policy.metadata
            about = ("", of.name, of.uid, of.resource_version, CONTROLLER)
            return cls(*about, event.type, event.reason, event.action, shorten(event.note), event.at, kind=KIND)
        pod = event.pod.metadata
        controller, note = event.pod.spec.scheduler_name, shorten(event.note)
        named = (pod.namespace, pod.name, pod.uid, pod.resource_version, controller)
        related = None if event.related is None else _names(event.related)
        return cls(*named, event.type, event.reason, event.action, note, event.at, related)


class _Struct(msgspec.Struct, rename="camel", omit_defaults=True):
    """Base of request bodies: fields with their default value are omitted."""


class _Metadata(_Struct):
    name: str
    namespace: str


class _Reference(_Struct):
    kind: str
    namespace: str
    name: str
    uid: str
    api_version: str
    resource_version: str = ""


class _Series(_Struct):
    count: int
    last_observed_time: str


class _Event(_Struct):
    api_version: str
    kind: str
    metadata: _Metadata
    event_time: str
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: _Reference
    note: str
    type: str
    series: _Series | None = None
    related: _Reference | None = None


class _SeriesPatch(_Struct):
    series: _Series


_ENCODER = msgspec.json.Encoder()


def event_name(about: EventContent) -> str:
    """Return an event name made from the object's name and the event's time."""
    nanoseconds = (about.at - _EPOCH) // _MICROSECOND * 1000
    suffix = f".{nanoseconds:x}"
    return about.name[: NAME_LIMIT - len(suffix)].rstrip("-.") + suffix


def _names(of: Pod | PodGroup) -> tuple[str, str, str, str, str]:
    meta = of.metadata
    return meta.namespace, meta.name, meta.uid, meta.resource_version, POD_GROUP if isinstance(of, PodGroup) else POD


def _reference(namespace: str, name: str, uid: str, version: str, kind: str = POD) -> _Reference:
    return _Reference(kind, namespace, name, uid, API_VERSIONS[kind], version)


def create_body(about: EventContent, name: str, host: str, series: tuple[int, datetime] | None = None) -> bytes:
    """Encode a new event; for a repeated event, `series` is its count and the time of the last occurrence."""
    body = _Event(
        api_version="events.k8s.io/v1",
        kind="Event",
        metadata=_Metadata(name, about.written_in),
        event_time=_micro_time(about.at),
        reporting_controller=about.controller,
        reporting_instance=f"{about.controller}-{host}",
        action=about.action,
        reason=about.reason,
        regarding=_reference(about.namespace, about.name, about.uid, about.resource_version, about.kind),
        related=_reference(*about.related) if about.related is not None else None,
        note=about.note,
        type=about.type,
        series=_Series(series[0], _micro_time(series[1])) if series else None,
    )
    return _ENCODER.encode(body)


def series_body(count: int, last: datetime) -> bytes:
    """Encode the patch that starts or continues the series of an event."""
    return _ENCODER.encode(_SeriesPatch(_Series(count, _micro_time(last))))


def shorten(note: str) -> str:
    """Replace invisible characters of a note and cut the note to the API server's limit; " ..." marks the cut."""
    return cut_bytes(visible(note[: NOTE_LIMIT + 1]), NOTE_LIMIT, _SUFFIX)  # no character gets shorter


def _micro_time(at: datetime) -> str:
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


MEMORY = 8192
"""Largest number of event series in memory; beyond it, the series that is idle longest is dropped."""
REFRESH = timedelta(minutes=5)
"""Shortest time between two writes of the occurrences of one running event series."""
FINISH = timedelta(minutes=6)
"""Time without a repetition of an event after which its series ends."""
_Key = tuple[str, str, str, str]


@dataclass(slots=True, eq=False)
class QueuedEvent:
    """An event to write, with the number of its occurrences and how many of these the API server has."""

    about: EventContent
    name: str
    last: datetime
    count: int = 1
    written_count: int = 0
    written_at: datetime | None = None
    failures: int = 0
    """Number of server errors (5xx) since the last success."""
    queued: bool = False

    @property
    def bytes(self) -> int:
        """Total size of the event's texts. Units: characters."""
        about = self.about
        return len(about.note) + len(about.name) + len(about.namespace) + len(self.name)

    @property
    def due(self) -> bool:
        """Whether the event should be written now."""
        if self.queued or not self.unwritten:
            return False
        return self.written_at is None or self.written_count == 1 or self.last - self.written_at >= REFRESH

    @property
    def unwritten(self) -> bool:
        """Whether the API server does not have the latest count of occurrences."""
        return self.count > self.written_count

    def written(self, count: int, last: datetime) -> None:
        """Record the number of occurrences that the API server has after a write."""
        self.written_count, self.written_at, self.failures = count, last, 0


class SeriesMemory:
    """The running series of events, in order of their last event."""

    def __init__(self) -> None:
        self._entries: OrderedDict[_Key, QueuedEvent] = OrderedDict()

    def note(self, event: Event | PolicyEvent) -> tuple[QueuedEvent, QueuedEvent | None]:
        """Add an event to its series; return its `QueuedEvent`, and the one that this removed from memory, if any."""
        about = EventContent.of(event)
        if about.type != "Warning" and about.kind == POD:
            return _entry(about), None
        key = _key(about)
        entry = self._entries.get(key)
        if entry is not None and event.at - entry.last <= FINISH:
            entry.count += 1
            entry.last = event.at
            self._entries.move_to_end(key)
            return entry, None
        over = self._entries.pop(key, None)
        if over is None and len(self._entries) >= MEMORY:
            over = self._entries.popitem(last=False)[1]
        entry = self._entries[key] = _entry(about)
        return entry, over

    def follows(self, entry: QueuedEvent) -> bool:
        """Return whether the series of an event still runs, so that its unwritten occurrences can be written later."""
        return self._entries.get(_key(entry.about)) is entry

    def forget(self, entry: QueuedEvent) -> None:
        """Remove the series of an event from memory."""
        if self.follows(entry):
            del self._entries[_key(entry.about)]

    def __iter__(self) -> Iterator[QueuedEvent]:
        return iter(list(self._entries.values()))


def _entry(about: EventContent) -> QueuedEvent:
    return QueuedEvent(about, event_name(about), about.at)


def _key(about: EventContent) -> _Key:
    return (about.uid or f"{about.namespace}/{about.name}", about.reason, about.action, about.note)
