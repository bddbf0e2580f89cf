"""What commands write where a user says: files, links, what the process has open already."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from policysched.app.files.output import replace_privately, write_in_place

Writing = Callable[[Path, bytes], None]
BOTH = pytest.mark.parametrize("writing", [write_in_place, replace_privately])


@BOTH
def test_a_link_stays_and_what_it_leads_to_is_written(writing: Writing, tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to("target")
    for text in (b"first", b"2nd"):
        writing(link, text)
        assert link.is_symlink()
        assert target.read_bytes() == text
    assert {one.name for one in tmp_path.iterdir()} == {"link", "target"}


@BOTH
def test_what_the_process_has_open_is_written_on(writing: Writing, tmp_path: Path) -> None:
    """A redirected /dev/stdout is a link to a file with more than this in it."""
    log, link = tmp_path / "log", tmp_path / "link"
    with log.open("wb", buffering=0) as file:
        file.write(b"before\n")
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        for path in (Path(f"/dev/fd/{file.fileno()}"), Path(f"/proc/{os.getpid()}/fd/{file.fileno()}"), link):
            writing(path, b"written\n")
        file.write(b"after\n")
    assert log.read_bytes() == b"before\n" + b"written\n" * 3 + b"after\n"


@BOTH
@pytest.mark.parametrize("name", ["9" * 20, "9" * 5000, "987654", "٣"])
def test_what_the_process_does_not_have_open_is_an_error(writing: Writing, name: str) -> None:
    with pytest.raises(OSError, match=r"."):
        writing(Path("/dev/fd") / name, b"")


@BOTH
def test_links_that_lead_to_each_other_are_an_error_and_stay(writing: Writing, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        writing(tmp_path / "a", b"")
    assert (tmp_path / "a").is_symlink()


def test_only_the_owner_reads_what_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    replace_privately(path, b"new")
    assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) == (0o600, b"new")
