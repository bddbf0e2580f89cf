"""Repetition of tests whenever a file changes: a test file, a file that a test names, or a file next to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from policysched.app.policy_tests.reading import find_files, read_tests
from policysched.errors import UsageError
from policysched.reading.files import SUFFIXES


def watch(names: Iterable[str], run: Callable[[], object], pause: Callable[[], object]) -> None:
    """Run tests now and after every change, until an exception ends the repetition.

    Args:
        names: Files and folders with tests.
        run: Runs the tests and prints the results.
        pause: Waits between two checks of the files.
    """
    paths = list(names)
    while True:
        before = snapshot(paths)
        run()
        while snapshot(paths) == before:
            pause()


def snapshot(names: Iterable[str]) -> dict[Path, tuple[int, int]]:
    """Return modification times and sizes of test files; unreadable files are omitted."""
    found: dict[Path, tuple[int, int]] = {}
    with suppress(UsageError):
        for file in find_files(names):
            for one in (file, *_beside(file)):
                with suppress(OSError):
                    stat = one.stat()
                    found[one] = (stat.st_mtime_ns, stat.st_size)
    return found


def _beside(file: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from (one for one in file.parent.iterdir() if one.suffix in SUFFIXES)
    with suppress(UsageError):
        written = msgspec.to_builtins(read_tests(file).written)
        yield from (file.parent / text for text in _texts(written) if Path(text).suffix in SUFFIXES)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
