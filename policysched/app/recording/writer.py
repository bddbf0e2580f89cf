"""A thread that writes records, so that the scheduler never waits for a disk: `RecordWriter`.

Entries wait in a bounded buffer. If it is full, or a file cannot be written, entries are dropped and counted; recording
continues after such a gap with a snapshot in a new file. The total size of all files is limited; the oldest are deleted
first.
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
"""Largest number of entries that wait for the writer's thread; further entries are dropped."""
LONGEST_WAIT: Final = 10.0
"""Time for which the oldest entry may wait for the disk; then further entries are dropped. Units: seconds."""
BLOCK: Final = 256 * 1024
"""Total size of waiting entries at which they are written as a block. Units: bytes, uncompressed."""
WAIT: Final = 0.5
"""Time for which the writer's thread waits for more entries before it writes a block. Units: seconds."""
RETRY: Final = 10.0
"""Pause after a failed write. Units: seconds."""
FILES: Final = 8
"""Number of files into which the size limit is divided."""
SMALLEST_LIMIT: Final = 1024 * 1024
"""Smallest allowed limit of a record's total size; a smaller limit is an error. Units: bytes."""
CLOSE_WITHIN: Final = 10.0
"""Longest wait for the writer's thread when the record is closed. Units: seconds."""
Entry = Callable[[], list[Any]]
"""Function that returns an entry ready to encode; the writer's thread calls the function."""


class RecordWriter:
    """Writes the files of a record.

    Args:
        folder: Folder of the files; created if it does not exist.
        limit: Largest total size. Units: bytes.

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
        """Whether entries are dropped until the next snapshot."""
        self._retry_at = 0.0
        self._is_large = False
        self._closing = threading.Event()
        self._file: BinaryIO | None = None
        self._blocks: BlockWriter | None = None
        self._path = folder
        """Path of the current file."""
        self._pending: list[bytes] = []
        self._pending_size = self._snapshot_size = 0
        self._broken = ""
        self._thread = threading.Thread(target=self._work, name="record", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Number of entries dropped since the last snapshot."""
        return self._lost

    @property
    def needs_snapshot(self) -> bool:
        """Whether the next entry should be a snapshot, because a file is full or entries have been dropped."""
        if self._gap:
            return not self._buffer and time.monotonic() >= self._retry_at
        return self._is_large

    def put(self, name: str, entry: Entry) -> None:
        """Queue an entry for the writer's thread; drop the entry if too many wait or entries were dropped before."""
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
        except IndexError:  # the thread has taken the last entry
            return False
        return len(self._buffer) >= MOST_WAITING or now - waits_since > LONGEST_WAIT

    def skip(self) -> None:
        """Drop all entries until the next snapshot, because an entry could not be created."""
        self._gap = True
        self._lost += 1

    def close(self) -> None:
        """Write waiting entries and the end of the record."""
        self._closing.set()
        self._thread.join(CLOSE_WITHIN)

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
        except Exception as error:  # one object that cannot be encoded must not stop the record
            log.exception("record: cannot encode an entry")
            self._pause_recording(f"cannot encode an entry: {error!r}")
            return
        self._pending.append(data)
        self._pending_size += len(data)
        if name == BEGIN or self._pending_size >= BLOCK:
            self._do(self._flush)
        if name == BEGIN and self._blocks is not None:
            self._note_begun(self._blocks)

    def _note_begun(self, blocks: BlockWriter) -> None:
        """Record that a file begins with a snapshot, so that entries are no longer dropped."""
        self._snapshot_size = blocks.size
        if self._broken:
            log.info("record: recording continues in %s", self._path)
        self._broken = ""

    def _do(self, act: Callable[[], None]) -> None:
        """Perform a file operation; after a failure drop entries until the next snapshot."""
        try:
            act()
        except OSError as error:
            self._pause_recording(str(error.strerror or error))

    def _pause_recording(self, why: str) -> None:
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
        """Close the file; delete it if nothing was written."""
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
        """Delete the oldest files until there is space for another full file."""
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
