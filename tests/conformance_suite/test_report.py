from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.conformance_suite import __main__ as suite
from tests.conformance_suite import build, cluster
from tests.conformance_suite.report import Spec, read, table
from tests.controlplane import golang

WAITING = (
    "validates that there exists conflict between pods with same hostPort and protocol but one using 0.0.0.0 hostIP"
)
LINES = f"""Running Suite
spec\tpassed\t12.3\t[sig-scheduling] one\twith a tab
  STEP: spec\tpassed\t1.0\tnot at the beginning
spec\tfailed\t0.1\t[sig-scheduling] another
spec\tpassed\t2.0\t[sig-scheduling] {WAITING}
"""


def test_lines_about_specs_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    specs = suite._follow(io.StringIO(LINES), tmp_path / "specs.log")
    assert [(spec.state, spec.seconds) for spec in specs] == [("passed", 12.3), ("failed", 0.1), ("passed", 2.0)]
    assert specs[0].name == "[sig-scheduling] one\twith a tab"
    assert (tmp_path / "specs.log").read_text() == LINES
    assert len(capsys.readouterr().out.splitlines()) == len(specs)


def test_spec_that_asserts_by_waiting_has_to_wait() -> None:
    early, late = (Spec(f"[sig-scheduling] {WAITING}", "passed", seconds) for seconds in (299.9, 300.0))
    assert (early.passed, late.passed) == (False, True)
    assert "passed, too soon" in early.line


def test_table_says_how_many_passed() -> None:
    specs = [found for line in LINES.splitlines(keepends=True) if (found := read(line))]
    lines = table(specs).splitlines()
    assert lines[-1] == "1 of 3 passed"
    assert [line.split()[0] for line in lines[:-1]] == ["failed", "passed", "passed,"]


def test_cluster_has_the_pods_that_specs_wait_for() -> None:
    pods = {pod["metadata"]["name"] for pod in cluster.system_pods()}
    assert pods == {f"{name}-{number}" for name in cluster.SYSTEM for number in range(cluster.NODES)}
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in cluster.nodes()]
    assert len(set(zones)) == cluster.ZONES


def test_program_is_built_once_per_version_of_its_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POLICYSCHED_CACHE", str(tmp_path))
    built = []

    def pretend(sources: Path, package: str, target: Path, *, tests: bool) -> None:
        built.append((sources, package, tests))
        target.write_text("program")

    monkeypatch.setattr(build, "go_build", pretend)
    assert build.binary() == build.binary()
    assert build.binary().name == f"scheduling-specs-{golang.fingerprint(build.SOURCES)}"
    assert built == [(build.SOURCES, ".", True)]
