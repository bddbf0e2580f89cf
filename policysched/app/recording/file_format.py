"""File format of a record: a header with the version, then blocks with length, number and checksum.

The checksum of a block includes the previous one, so missing, exchanged or altered blocks are detected. A block
contains compressed entries: lists whose first item is the entry's name. The last entry marks the end; a file without it
was truncated.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np

from policysched.errors import UsageError
from policysched.reading.files import why

VERSION: Final = 1
HEAD: Final = b"policysched record %d\n"
_HEAD: Final = re.compile(rb"policysched record (\d{1,9})\n")
_BLOCK: Final = struct.Struct(">II16sI")
"""Header of a block: length, number, checksum of the data, checksum of the header."""
SUFFIX: Final = ".record"
END: Final = "end"
"""Name of the last entry of a file."""
MOST_BLOCK: Final = 1024 * 1024 * 1024
"""Largest decompressed block; more is an error. Units: bytes."""
MOST_READ: Final = 4 << 30
"""Largest estimated memory of a decoded entry; more is an error. 50,000 nodes need 2 GiB. Units: bytes."""
OBJECT_MEMORY: Final = 72
"""Estimated memory of a decoded list, map or text without its contents. Units: bytes."""
MEMORY_PER_BYTE: Final = 8
"""Largest memory per encoded byte of a decoded value that is no list, map or text. Units: bytes."""
LEVEL: Final = 3
"""Compression level; a higher level takes twice the time to save a seventh of the size."""
ENCODER: Final = msgspec.msgpack.Encoder()


class BrokenRecordError(UsageError):
    """A truncated or altered file of a record; the text has the reason."""

    def __init__(self, message: str, *, cut: bool) -> None:
        super().__init__(message)
        self.cut = cut
        """Whether the file is truncated; otherwise it was altered."""


class BlockWriter:
    """Writes blocks of compressed entries to one file of a record.

    Args:
        file: A new file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._number = file, 0
        self._before = head = HEAD % VERSION
        _write_all(file, head)
        self.size = len(head)
        """Size of the file. Units: bytes."""

    @property
    def is_empty(self) -> bool:
        """Whether no block was written."""
        return self._number == 0

    def write(self, entries: list[bytes]) -> None:
        """Write a block of encoded entries.

        Raises:
            OSError: the block cannot be written; the file is truncated to its previous length if possible.
        """
        data = zlib.compress(b"".join(entries), LEVEL)
        number = self._number + 1
        checksum = _checksum(self._before, number, data)
        try:
            _write_all(self._file, _head_of(len(data), number, checksum) + data)
            self._file.flush()
        except OSError:
            self._file.truncate(self.size)
            raise
        self._number, self._before = number, checksum
        self.size += _BLOCK.size + len(data)


def _write_all(file: BinaryIO, data: bytes) -> None:
    """Write all data to an unbuffered file, which may write only a part if the disk is nearly full."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def read_entries(path: Path) -> Iterator[list[Any]]:
    """Yield the entries of a file in order.

    Raises:
        UsageError: the file is not a record, has another version, or cannot be read.
        BrokenRecordError: the file is truncated or altered; earlier entries were yielded.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise UsageError(f"{path}: {why(error)}") from error
    with file:
        try:
            yield from _entries_of(path, file)
        except OSError as error:
            raise UsageError(f"{path}: {why(error)}") from error


def _entries_of(path: Path, file: BinaryIO) -> Iterator[list[Any]]:
    before, number = _read_head(path, file), 0
    decoder = msgspec.msgpack.Decoder()
    entry: list[Any] = []
    while True:
        number += 1
        head = file.read(_BLOCK.size)
        if not head:
            break
        data, before = _read_block(path, file, head, before, number)
        for entry in _entries(path, data, number, decoder):
            yield entry
    if entry[:1] != [END]:
        raise BrokenRecordError(f"{path}: file is incomplete: no end marker", cut=True)


def _read_head(path: Path, file: BinaryIO) -> bytes:
    head = file.readline(64)
    found = _HEAD.fullmatch(head)
    if found is None and (HEAD % VERSION).startswith(head):
        raise BrokenRecordError(f"{path}: file is incomplete: it ends before the first block", cut=True)
    if found is None:
        raise UsageError(f"{path}: not a policysched record")
    if int(found[1]) != VERSION:
        raise UsageError(f"{path}: unsupported record version {int(found[1])}; expected {VERSION}")
    return head


def _read_block(path: Path, file: BinaryIO, head: bytes, before: bytes, number: int) -> tuple[bytes, bytes]:
    in_the_middle = BrokenRecordError(f"{path}: file is incomplete: it ends inside a block", cut=True)
    if len(head) < _BLOCK.size:
        raise in_the_middle
    length, stated, checksum, _ = _BLOCK.unpack(head)
    altered = BrokenRecordError(f"{path}: block {number} is corrupted", cut=False)
    if stated != number or head != _head_of(length, stated, checksum):
        raise altered
    data = file.read(length)
    if len(data) < length:
        raise in_the_middle
    if _checksum(before, number, data) != checksum:
        raise altered
    return data, checksum


def _entries(path: Path, data: bytes, number: int, decoder: msgspec.msgpack.Decoder[Any]) -> Iterator[list[Any]]:
    unpacking = zlib.decompressobj()
    try:
        plain = unpacking.decompress(data, MOST_BLOCK)
        if unpacking.unconsumed_tail:
            raise BrokenRecordError(f"{path}: block {number} is too large", cut=False)
        begin = 0
        while begin < len(plain):
            end = begin + 4 + int.from_bytes(plain[begin : begin + 4])
            entry = plain[begin + 4 : end]
            if _memory(entry) > MOST_READ:
                raise BrokenRecordError(f"{path}: block {number}: entry is too large", cut=False)
            yield decoder.decode(entry)
            begin = end
    except (zlib.error, msgspec.MsgspecError, RecursionError) as error:
        raise BrokenRecordError(f"{path}: cannot read block {number}: {error}", cut=False) from error


def encoded(entry: list[Any]) -> bytes:
    """Encode an entry, preceded by its length."""
    data = ENCODER.encode(entry)
    return len(data).to_bytes(4) + data


def _memory(entry: bytes) -> int:
    """Estimate the largest memory of a decoded entry. Units: bytes."""
    data = np.frombuffer(entry, np.uint8)
    objects = np.count_nonzero(data >= _FIRST_HEADER)
    return MEMORY_PER_BYTE * len(entry) + OBJECT_MEMORY * int(objects)


_FIRST_HEADER = 0x80
"""Smallest byte that can begin an encoded list, map, text, long value or negative number; no ASCII character."""


def _head_of(length: int, number: int, checksum: bytes) -> bytes:
    return _BLOCK.pack(length, number, checksum, zlib.crc32(b"%d %d %s" % (length, number, checksum)))


def _checksum(before: bytes, number: int, data: bytes) -> bytes:
    made = hashlib.blake2b(before, digest_size=16)
    made.update(number.to_bytes(4))
    made.update(data)
    return made.digest()


def files_of(given: Path) -> list[Path]:
    """Return the files of a record in order: the given file itself, or the files of the given folder.

    Raises:
        UsageError: there is no file.
    """
    try:
        if not given.is_dir():
            return [given]
        # Only regular files: opening a pipe of such a name would block.
        found = sorted(one for one in given.glob(f"*{SUFFIX}") if one.is_file())
    except OSError as error:
        raise UsageError(f"{given}: {why(error)}") from error
    if not found:
        raise UsageError(f"{given}: no record files (*{SUFFIX})")
    return found
