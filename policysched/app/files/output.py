"""Writing of files chosen by users: regular files, devices, pipes, or open descriptors of the process."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_DESCRIPTORS: Final = re.compile(r"/dev/fd|/proc/(\d+)/(task/\d+/)?fd")
_MOST_LINKS: Final = 40


def write_in_place(path: Path, data: bytes) -> None:
    """Write a file in place; paths such as `/dev/stdout` are written through the open descriptor.

    Raises:
        OSError: the file cannot be written.
    """
    number = _descriptor(path)
    if number is None:
        path.write_bytes(data)
        return
    with os.fdopen(os.dup(number), "wb") as file:
        file.write(data)


def replace_privately(path: Path, data: bytes) -> None:
    """Replace a file atomically by a file that only its owner can read; links, devices and pipes stay.

    Raises:
        OSError: the file cannot be written.
    """
    if _descriptor(path) is not None or (path.exists() and not path.is_file()):
        write_in_place(path, data)
        return
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        beside.replace(target)
    finally:
        with suppress(OSError):  # it no longer exists after a successful replacement
            beside.unlink(missing_ok=True)


def folder_problem(folder: Path, error: OSError) -> str:
    """Return why a folder cannot be created or used, and what to do."""
    file = next((one for one in (folder, *folder.parents) if os.path.isfile(one)), None)  # noqa: PTH113 - long names
    if file is not None:
        return f'"{file}" is a file; name a folder'
    return f'cannot use "{folder}": {(error.strerror or str(error)).lower()}'


def _descriptor(path: Path) -> int | None:
    """Return the open descriptor of this process to which a path refers; None if the path is a usual path.

    Raises:
        OSError: a loop of symbolic links.
    """
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(path.parent)
        found = _DESCRIPTORS.fullmatch(folder)
        if found is not None and found[1] in (None, str(os.getpid())) and _NUMBER.fullmatch(path.name):
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder) / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
