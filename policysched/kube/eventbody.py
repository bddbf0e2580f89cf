"""An event as events.k8s.io/v1 wants it, as bytes.

Source: client-go/tools/events/event_recorder.go (makeEvent); k8s.io/kubernetes/pkg/apis/core/validation/events.go.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from policysched.framework import Event
from policysched.visible import visible

NOTE_LIMIT = 1024
"""Units: bytes."""
NAME_LIMIT = 253
_SUFFIX = " ..."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class About(NamedTuple):
    """What an event says, without the pod that it is about: that may be large, and gone long before it is written."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    controller: str
    type: str
    reason: str
    action: str
    note: str
    """No longer than the API server takes."""
    at: datetime

    @classmethod
    def of(cls, event: Event) -> About:
        """Take what is written of an event."""
        pod = event.pod.metadata
        controller, note = event.pod.spec.scheduler_name, shorten(event.note)
        named = (pod.namespace, pod.name, pod.uid, pod.resource_version, controller)
        return cls(*named, event.type, event.reason, event.action, note, event.at)


class _Struct(msgspec.Struct, rename="camel", omit_defaults=True):
    """Absent fields are not sent."""


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


class _SeriesPatch(_Struct):
    series: _Series


_ENCODER = msgspec.json.Encoder()


def event_name(about: About) -> str:
    """Name an event after its pod and its time."""
    nanoseconds = (about.at - _EPOCH) // _MICROSECOND * 1000
    suffix = f".{nanoseconds:x}"
    return about.name[: NAME_LIMIT - len(suffix)] + suffix


def create_body(about: About, name: str, host: str, series: tuple[int, datetime] | None = None) -> bytes:
    """Encode a new event; `series` is its count and when it was last seen, where it was seen more than once."""
    body = _Event(
        api_version="events.k8s.io/v1",
        kind="Event",
        metadata=_Metadata(name, about.namespace),
        event_time=_micro_time(about.at),
        reporting_controller=about.controller,
        reporting_instance=f"{about.controller}-{host}",
        action=about.action,
        reason=about.reason,
        regarding=_Reference("Pod", about.namespace, about.name, about.uid, "v1", about.resource_version),
        note=about.note,
        type=about.type,
        series=_Series(series[0], _micro_time(series[1])) if series else None,
    )
    return _ENCODER.encode(body)


def series_body(count: int, last: datetime) -> bytes:
    """Encode the patch that makes an event a series, or continues it."""
    return _ENCODER.encode(_SeriesPatch(_Series(count, _micro_time(last))))


def shorten(note: str) -> str:
    """Write a note out in visible characters, cut to the longest that the API server takes; the cut is marked."""
    note = visible(note)
    encoded = note.encode()
    if len(encoded) <= NOTE_LIMIT:
        return note
    return encoded[: NOTE_LIMIT - len(_SUFFIX)].decode(errors="ignore") + _SUFFIX


def _micro_time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
