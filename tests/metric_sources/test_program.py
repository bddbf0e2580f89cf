from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.metric_sources import program


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that is the whole PATH, for commands that only pretend."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("POLICYSCHED_CACHE", str(tmp_path / "cache"))
    return folder


def pretend(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
    path.chmod(0o755)
    return path


APT = (
    'echo "$@" >> {log}; case "$2" in update) : > {lists};; download) [ -e {lists} ] && : > prometheus_2_all.deb;; esac'
)
DPKG = 'mkdir -p "$3/usr/bin" && echo program > "$3/usr/bin/prometheus"'


def test_the_one_on_the_path_is_used(commands: Path) -> None:
    made = pretend(commands, "prometheus", "")
    assert program.binary() == made


def test_debians_is_fetched_once_with_fresh_lists_where_there_are_none(commands: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    pretend(commands, "apt-get", APT.format(log=log, lists=tmp_path / "lists"))
    pretend(commands, "dpkg-deb", DPKG)
    found = program.binary()
    assert found.read_text() == "program\n"
    assert program.binary() == found == tmp_path / "cache/bin/debian/prometheus"
    assert log.read_text().splitlines() == ["-q download prometheus", "-q update", "-q download prometheus"]
    assert [path.name for path in found.parent.iterdir()] == ["prometheus"]


def test_it_says_what_is_missing(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main() == 1
    assert "no prometheus on the PATH, and no apt-get" in capsys.readouterr().err
    pretend(commands, "apt-get", "echo no network >&2; exit 100")
    pretend(commands, "dpkg-deb", DPKG)
    assert program.main() == 1
    assert "`apt-get -q update` fails:\nno network" in capsys.readouterr().err
    assert os.environ["PATH"] == str(commands)
