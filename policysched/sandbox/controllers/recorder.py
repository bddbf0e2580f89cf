"""Events that controllers write: what was scaled, created and deleted.

It knows how an event is made, not when. Events of one kind about one object are not counted up, because in
trying things out every step is worth its line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import StatusError
from policysched.sandbox.storage.writes import WriteOptions, create

if TYPE_CHECKING:
    from policysched.sandbox.storage.backend import Backend


def _stamp(backend: Backend) -> int:
    """Number events so that their names sort by time; the version keeps those of one moment apart."""
    return int(backend.now().timestamp() * 1000) * 1_000_000 + backend.store.revision % 1_000_000


def record(backend: Backend, about: tuple[str, str, Json], reason: str, message: str, source: str) -> None:
    """Write an event about an object, given as API version, kind and object."""
    api_version, kind, obj = about
    metadata, now = obj["metadata"], backend.timestamp()
    involved = {"apiVersion": api_version, "kind": kind}
    involved |= {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata}
    event = {
        "metadata": {"name": f"{metadata['name']}.{_stamp(backend):x}"},
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": "Normal",
        "source": {"component": source},
        "reportingComponent": source,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    resource = backend.registry.of_kind("Event", "v1")
    try:
        if resource is not None:
            create(backend, resource, metadata.get("namespace") or "default", event, WriteOptions())
    except StatusError:
        return  # a namespace that ends takes no more events
