from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.controlplane import build, golang, releases
from tests.deploy import build as deploy
from tests.oracle import build as oracle


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Path, str]]:
    """What was built, by a Go that only pretends."""
    monkeypatch.setenv("POLICYSCHED_CACHE", str(tmp_path))
    made: list[tuple[Path, str]] = []

    def pretend(sources: Path, package: str, target: Path, release: releases.Release | None = None) -> None:
        made.append((sources, package))
        target.write_text("program")

    monkeypatch.setattr(build, "go_build", pretend)
    monkeypatch.setattr(oracle, "go_build", pretend)
    monkeypatch.setattr(deploy, "go_build", pretend)
    return made


def test_program_is_built_once(built: list[tuple[Path, str]], tmp_path: Path) -> None:
    assert (
        build.binary("kubectl") == build.binary("kubectl") == tmp_path / "bin" / releases.chosen().version / "kubectl"
    )
    assert built == [(build.HERE, "k8s.io/kubernetes/cmd/kubectl")]


def test_oracle_is_built_once_and_pushes_out_the_one_used_longest_ago(built: list[tuple[Path, str]]) -> None:
    others = [golang.program_folder() / f"oracle-{number}" for number in range(oracle.KEPT)]
    for age, other in enumerate(others):
        other.write_text("of other sources")
        os.utime(other, (1000 - age, 1000 - age))
    assert oracle.binary() == oracle.binary()
    assert built == [(oracle.SOURCES, ".")]
    assert [other.exists() for other in others] == [True] * (oracle.KEPT - 1) + [False]


def test_everything_is_built_with_a_line_for_each(
    built: list[tuple[Path, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def kubectl(release: releases.Release) -> dict[str, str]:
        return {} if release is releases.chosen() else {"kubectl": build.PACKAGES["kubectl"]}

    compared = [releases.RELEASES[minor] for minor in releases.COMPARED]
    monkeypatch.setattr(build, "find_go", lambda: Path("/opt/go"))
    assert build.main() == 0
    assert [package for _, package in built] == [
        *build.PACKAGES.values(),
        *(package for one in compared for package in (*oracle.PACKAGES.values(), *kubectl(one).values())),
        *deploy.PACKAGES.values(),
    ]
    lines = capsys.readouterr().out.splitlines()
    of_releases = [f"{name} {one.version}" for one in compared for name in (*oracle.PACKAGES, *kubectl(one))]
    steps = [*build.PACKAGES, *of_releases, *deploy.PACKAGES]
    assert lines[0] == "Go: /opt/go"
    assert [line.rpartition(": ")[0] for line in lines[3::2]] == [
        f"[{number}/{len(steps)}] {step}" for number, step in enumerate(steps, 1)
    ]


def test_building_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POLICYSCHED_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert build.main() == 1
    assert "no Go 1.26 on the PATH, and no virtual environment" in capsys.readouterr().err
