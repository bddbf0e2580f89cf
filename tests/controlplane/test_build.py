from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.controlplane import build

if TYPE_CHECKING:
    from pathlib import Path


def test_cache_root_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("POLICYSCHED_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.cache_root() == tmp_path / "policysched"
    monkeypatch.setenv("POLICYSCHED_CACHE", str(tmp_path / "own"))
    assert build.cache_root() == tmp_path / "own"


def test_a_program_is_built_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POLICYSCHED_CACHE", str(tmp_path))
    built = []

    def pretend(package: str, target: Path) -> None:
        built.append(package)
        target.write_text("program")

    monkeypatch.setattr(build, "_build", pretend)
    assert build.binary("kubectl") == build.binary("kubectl") == tmp_path / "bin" / build.VERSION / "kubectl"
    assert built == ["k8s.io/kubernetes/cmd/kubectl"]


def test_the_version_is_stamped_for_both_packages() -> None:
    flags = build.link_flags()
    assert flags.startswith("-s -w -X k8s.io/component-base/version.gitVersion=v1.36.2 ")
    assert "-X k8s.io/client-go/pkg/version.gitMinor=36 " in flags


def test_an_old_go_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go version go1.19.4 linux/amd64\n")
    old.chmod(0o755)
    assert build.go_version(old) == (1, 19)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(build, "_install_go", lambda: None)
    with pytest.raises(build.BuildError, match=r"Go 1\.26 or later is needed"):
        build.go()


def test_outside_a_virtual_environment_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(build.BuildError, match="virtual environment"):
        build._install_go()


def test_a_failed_build_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "go"
    broken.write_text("#!/bin/sh\necho no such package >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(build, "go", lambda: broken)
    with pytest.raises(build.BuildError, match="no such package"):
        build._build("example.com/x", tmp_path / "x")
