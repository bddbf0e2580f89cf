"""`RecordWriter`: a thread that writes what is recorded, so that nobody waits for a disk.

What is recorded waits in a bounded buffer. Where that is full, or a file cannot be written, entries are given up and
counted; what comes after such a gap begins with a snapshot in a file of its own. All files together stay within a
limit, the oldest go first.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from policysched.app.files.output import folder_problem
from policysched.app.recording.entries import BEGIN
from policysched.app.recording.file_format import END, SUFFIX, BlockWriter, encoded
from policysched.errors import UsageError

log = logging.getLogger(__name__)
MOST_WAITING: Final = 1 << 16
"""How many entries may wait to be written."""
LONGEST_WAIT: Final = 10.0
"""How long the first of them may wait: objects can be large, and a disk that hangs takes none. Units: seconds."""
BLOCK: Final = 256 * 1024
"""How large a block becomes before it is written. Units: bytes, not compressed."""
WAIT: Final = 0.5
"""How long the thread waits for more. Units: seconds."""
RETRY: Final = 10.0
"""How long nothing is tried after a file could not be written. Units: seconds."""
FILES: Final = 8
"""How many files the limit is for."""
SMALLEST_LIMIT: Final = 1024 * 1024
LAST_WORDS: Final = 10.0
"""How long the end waits for the thread. Units: seconds."""
Entry = Callable[[], list[Any]]
"""Makes an entry ready to be encoded; the thread calls it."""


class RecordWriter:
    """Writes the files of a record.

    Args:
        folder: Where they are; it is made if it is not there.
        limit: How long they may be together. Units: bytes.

    Raises:
        UsageError: the folder cannot be used, or the limit is too low.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        if limit < SMALLEST_LIMIT:
            raise UsageError(f"--record-limit {limit} is too small; the minimum is {SMALLEST_LIMIT:,} bytes")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._number = _next_number(folder)
        except OSError as error:
            raise UsageError(f"--record: {folder_problem(folder, error)}") from error
        self._folder, self._limit = folder, limit
        self._buffer: deque[tuple[float, str, Entry]] = deque()
        self._lost = 0
        self._gap = False
        """Whether entries are given up until the next snapshot, by the loop or by the thread."""
        self._retry_at = 0.0
        self._is_large = False
        self._closing = threading.Event()
        self._file: BinaryIO | None = None
        self._blocks: BlockWriter | None = None
        self._path = folder
        """The file's."""
        self._pending: list[bytes] = []
        self._pending_size = self._snapshot_size = 0
        self._broken = ""
        self._thread = threading.Thread(target=self._work, name="record", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """How many entries were given up since the last snapshot."""
        return self._lost

    @property
    def wants_snapshot(self) -> bool:
        """Whether the next entry is to be a snapshot: files follow each other, or a gap can end."""
        if self._gap:
            return not self._buffer and time.monotonic() >= self._retry_at
        return self._is_large

    def put(self, name: str, entry: Entry) -> None:
        """Have an entry written, or give it up."""
        now = time.monotonic()
        if name == BEGIN:
            self._gap = self._is_large = False
            self._lost = 0
        elif self._gap or self._is_full(now):
            self._gap = True
            self._lost += 1
            return
        self._buffer.append((now, name, entry))

    def _is_full(self, now: float) -> bool:
        try:
            waits_since = self._buffer[0][0]
        except IndexError:  # the thread has taken the last one
            return False
        return len(self._buffer) >= MOST_WAITING or now - waits_since > LONGEST_WAIT

    def skip(self) -> None:
        """Record that something could not be recorded: a gap begins."""
        self._gap = True
        self._lost += 1

    def close(self) -> None:
        """Write what waits, and the end."""
        self._closing.set()
        self._thread.join(LAST_WORDS)

    def _work(self) -> None:
        while True:
            ends = self._closing.is_set()
            while self._buffer:
                _, name, entry = self._buffer.popleft()
                self._take(name, entry)
            self._do(self._flush)
            if ends:
                self._do(self._end_file)
                return
            self._closing.wait(WAIT)

    def _take(self, name: str, entry: Entry) -> None:
        if name == BEGIN:
            self._do(self._begin_file)
        if self._file is None:
            self._lost += 1
            self._gap = True
            return
        try:
            data = encoded(entry())
        except Exception as error:  # one object that cannot be written is no reason to record nothing
            log.exception("record: cannot encode an entry")
            self._give_up(f"cannot encode an entry: {error!r}")
            return
        self._pending.append(data)
        self._pending_size += len(data)
        if name == BEGIN or self._pending_size >= BLOCK:
            self._do(self._flush)
        if name == BEGIN and self._blocks is not None:
            self._note_begun(self._blocks)

    def _note_begun(self, blocks: BlockWriter) -> None:
        """Note that a file has its snapshot: a gap before it has ended."""
        self._snapshot_size = blocks.size
        if self._broken:
            log.info("record: recording continues in %s", self._path)
        self._broken = ""

    def _do(self, act: Callable[[], None]) -> None:
        """Work on files; where that fails, give up until the next snapshot."""
        try:
            act()
        except OSError as error:
            self._give_up(str(error.strerror or error))

    def _give_up(self, why: str) -> None:
        if why != self._broken:
            text = "record: %s: %s; recording is paused until the record is writable, scheduling continues"
            log.error(text, self._folder, why)
        self._broken = why
        self._lost += len(self._pending)
        self._pending, self._pending_size = [], 0
        self._close_file()
        self._retry_at = time.monotonic() + RETRY
        self._gap = True

    def _close_file(self) -> None:
        """Close the file, and delete one of which nothing could be written."""
        file, blocks = self._file, self._blocks
        self._file = self._blocks = None
        if file is None:
            return
        try:
            file.close()
            if blocks is None or blocks.is_empty:
                self._path.unlink(missing_ok=True)
        except OSError:
            log.debug("record: cannot close a file", exc_info=True)

    def _begin_file(self) -> None:
        self._end_file()
        self._number += 1
        at = datetime.now(UTC)
        self._path = self._folder / f"{self._number:08d}-{at:%Y%m%dT%H%M%SZ}{SUFFIX}"
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        self._file = os.fdopen(handle, "wb", buffering=0)
        self._blocks = BlockWriter(self._file)
        self._make_room()

    def _end_file(self) -> None:
        if self._file is None:
            return
        self._pending.append(encoded([END, self._lost]))
        self._flush()
        self._close_file()

    def _flush(self) -> None:
        if self._blocks is None or not self._pending:
            return
        self._blocks.write(self._pending)
        self._pending, self._pending_size = [], 0
        own = max(self._limit // FILES, 2 * self._snapshot_size)
        self._is_large = self._is_large or self._blocks.size > min(own, self._limit // 2)
        if self._is_large:
            self._make_room()

    def _make_room(self) -> None:
        """Delete the oldest files, so that there is room for as much again as a file may have."""
        found = sorted(self._folder.glob(f"*{SUFFIX}"))
        sizes = {path: path.stat().st_size for path in found}
        room = self._limit - self._limit // FILES
        for path in found[:-1]:
            if sum(sizes.values()) <= room:
                return
            path.unlink(missing_ok=True)
            del sizes[path]
        if sum(sizes.values()) > self._limit:
            raise OSError(f"snapshot of this cluster is larger than --record-limit {self._limit:,}")


def _next_number(folder: Path) -> int:
    numbers = (path.name.partition("-")[0] for path in folder.glob(f"*{SUFFIX}"))
    return max((int(one) for one in numbers if one.isdecimal()), default=0)
