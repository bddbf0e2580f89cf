"""Which events repeat an earlier one, and when their series is worth a request.

The same words about the same pod are one series: its second event is written at once, later ones now and then. A pod
that nothing was said about for a while starts anew. Only warnings repeat, so only they are remembered. It makes no
request.

Source: client-go/tools/events/event_broadcaster.go (refreshTime, finishTime).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from policysched.framework import Event
from policysched.kube.eventbody import About, event_name

MEMORY = 8192
"""How many series are followed at once."""
REFRESH = timedelta(minutes=5)
"""How often a series that goes on is written."""
FINISH = timedelta(minutes=6)
"""After which silence a series is over."""
_Key = tuple[str, str, str, str]


@dataclass(slots=True, eq=False)
class Entry:
    """An event, how often it occurred, and how much of that was written."""

    about: About
    name: str
    last: datetime
    count: int = 1
    written_count: int = 0
    written_at: datetime | None = None
    failures: int = 0
    """How often the server failed at it (5xx) since it was last written."""
    queued: bool = False

    @property
    def bytes(self) -> int:
        """How long its texts are."""
        about = self.about
        return len(about.note) + len(about.name) + len(about.namespace) + len(self.name)

    @property
    def due(self) -> bool:
        """Whether a request is worth it now."""
        if self.queued or not self.unwritten:
            return False
        return self.written_at is None or self.written_count == 1 or self.last - self.written_at >= REFRESH

    @property
    def unwritten(self) -> bool:
        """Whether the server does not know the latest count."""
        return self.count > self.written_count

    def written(self, count: int, last: datetime) -> None:
        """Note that the server knows so much."""
        self.written_count, self.written_at, self.failures = count, last, 0


class SeriesMemory:
    """The series under way, the one heard of longest ago first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[_Key, Entry] = OrderedDict()

    def note(self, event: Event) -> tuple[Entry, Entry | None]:
        """Give the entry that an event belongs to, and one that is no longer followed on its account."""
        about = About.of(event)
        if about.type != "Warning":
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

    def follows(self, entry: Entry) -> bool:
        """Tell whether an entry's series is under way, so that what is not written now can be so later."""
        return self._entries.get(_key(entry.about)) is entry

    def forget(self, entry: Entry) -> None:
        """Follow an entry no longer."""
        if self.follows(entry):
            del self._entries[_key(entry.about)]

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))


def _entry(about: About) -> Entry:
    return Entry(about, event_name(about), about.at)


def _key(about: About) -> _Key:
    return (about.uid or f"{about.namespace}/{about.name}", about.reason, about.action, about.note)
