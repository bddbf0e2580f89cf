"""Archives whose bytes depend only on the names and contents of their members."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

Members = Mapping[str, bytes]


def members_below(folder: Path, prefix: str) -> dict[str, bytes]:
    """Return the files below a folder by their names in an archive; a link is replaced by its target's content."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.iterdir()):
        name = f"{prefix}/{path.name}"
        found |= members_below(path, name) if path.is_dir() else {name: path.read_bytes()}
    return found


def pack(target: Path, members: Members, seconds: int) -> None:
    """Write a compressed tar archive whose members all have one modification time, mode 644 and no owner."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(members):
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(members[name]), seconds, 0o644
            archive.addfile(member, io.BytesIO(members[name]))
    target.write_bytes(gzip.compress(raw.getvalue(), mtime=0))
