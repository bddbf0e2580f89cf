"""Read the bytes or the text of files and of the standard input."""

from __future__ import annotations

import os
import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final

from policysched.errors import UsageError

STDIN: Final = "-"
"""File name that means the standard input."""
SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
"""Suffixes of the files that are read when a folder is named."""
TESTS: Final = re.compile(r"(?:.*[-_.])?tests\.ya?ml")
"""Glob pattern of policy test files (for `policysched test`), which other commands skip in folders."""
_FIRST: Final = 1 << 20
"""Size of the part that is read before a file is checked for binary content. Units: bytes."""
LARGEST: Final = 1 << 31
"""Largest size of a file; a larger file is an error. Units: bytes."""


def read_text(name: str) -> str:
    """Read a text file, or the standard input for `-`; convert line ends to line feeds.

    Raises:
        UsageError: the file cannot be read or is not text.
    """
    return as_text(read_bytes(name), shown(name)).replace("\r\n", "\n")


def read_bytes(name: str) -> bytes:
    """Read a file, or the standard input for `-`.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        if not name:
            raise FileNotFoundError
        if name == STDIN:
            return _standard_input(sys.stdin.buffer)
        with Path(name).open("rb") as file:
            return _bytes_of(file, name)
    except OSError as error:
        raise UsageError(f"{shown(name)}: {why(error)}") from error


@lru_cache(maxsize=1)
def _standard_input(file: BinaryIO) -> bytes:
    """Return the content of the standard input, read once even if several flags name it."""
    return _bytes_of(file, STDIN)


def _bytes_of(file: BinaryIO, name: str) -> bytes:
    """Read a file to its end; reject an endless device or pipe without waiting for its end."""
    first = file.read(_FIRST)
    if len(first) < _FIRST:
        return first
    if b"\0" in first:
        raise UsageError(f"{shown(name)}: not a text file")
    most = LARGEST + 1
    if file.seekable():
        # Read from the beginning again: joining two parts would need the memory of both.
        begin = file.tell() - len(first)
        most = max(len(first), min(most, file.seek(0, os.SEEK_END) - begin + 1))
        file.seek(begin)
        first = b""
    data = first + file.read(most - len(first))
    if len(data) > LARGEST:
        raise UsageError(f"{shown(name)}: larger than {LARGEST >> 30} GiB")
    return data


def as_text(data: bytes, file: str) -> str:
    """Decode the bytes of a text file; drop a leading byte order mark.

    Raises:
        UsageError: the bytes are not text.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8 text") from error
    if "\0" in text:
        raise UsageError(f"{file}: not a text file")
    return text


def shown(name: str) -> str:
    """Return a file name as messages show it."""
    return {STDIN: "<stdin>", "": '""'}.get(name, name)


def exists(file: Path) -> bool:
    """Return whether a file exists; False if its name is longer than the system allows."""
    try:
        return file.exists()
    except OSError:
        return False


def why(error: OSError) -> str:
    """Return the reason why a file cannot be read, as a text for messages."""
    match error:
        case FileNotFoundError():
            return "no such file"
        case PermissionError():
            return "permission denied"
    return (error.strerror or str(error)).lower()
