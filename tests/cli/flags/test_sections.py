"""The flags beside those of the real kube-scheduler: none is forgotten, none is said to be what it is not."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from typer.main import get_command

from policysched.cli import make_app
from policysched.cli.flags.feature_gates import FIXED, apply_gates, known_gates
from policysched.cli.flags.sections import FLAGS, SECTIONS, OwnFlags, RunFlags
from policysched.errors import UsageError
from policysched.model.release import RELEASES, Release
from tests.controlplane.build import binary
from tests.controlplane.releases import chosen
from tools.documents.markdown import ROOT

SECONDS = 60
RELEASE = RELEASES[chosen().minor]


@pytest.fixture(scope="module")
def its_help() -> str:
    return ran("--help").stdout


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run kube-scheduler."""
    command: list[str | Path] = [binary("kube-scheduler"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def test_flags_are_kube_schedulers_section_by_section(its_help: str) -> None:
    found: dict[str, list[str]] = {}
    for line in its_help.splitlines():
        if re.fullmatch(r"[A-Z].* flags:", line):
            names = found.setdefault(line[:-1], [])
        elif told := re.match(r"      --([\w-]+)|  -\w, --([\w-]+)", line):
            names.append(told[1] or told[2])
    found["Global flags"].remove("help")
    own = {
        section.TITLE: sorted(one.name for one in FLAGS if one.section == section.TITLE)
        for section in SECTIONS.values()
        if section is not OwnFlags
    }
    assert own == {title: sorted(names) for title, names in found.items()}
    assert sum(map(len, found.values())) > 60


def test_our_own_flags_are_none_of_kube_schedulers(its_help: str) -> None:
    assert not [one.name for one in FLAGS if one.section == OwnFlags.TITLE and f"--{one.name} " in its_help]


def test_gates_are_kube_schedulers_with_their_stages_and_defaults(its_help: str) -> None:
    listed = re.findall(r"kube:(\w+)=true\|false \((\w+) - default=(\w+)\)", its_help)
    gates = known_gates(RELEASE)
    shown = {name for name, gate in gates.items() if gate.stage in {"ALPHA", "BETA"}}
    assert {(name, gates[name].stage, str(gates[name].default).lower()) for name in shown} == set(listed)


def test_gates_that_its_help_hides_are_known_to_it_with_the_same_locks() -> None:
    every = ",".join(f"{name}={str(gate.default).lower()}" for name, gate in known_gates(RELEASE).items())
    done = ran(f"--feature-gates={every}", "--version")
    assert (done.returncode, done.stdout) == (0, f"Kubernetes {chosen().version}\n")
    locked = next(name for name, gate in known_gates(RELEASE).items() if gate.is_locked and gate.default)
    assert f"cannot set feature gate {locked} to false" in ran(f"--feature-gates={locked}=false", "--version").stderr


IMPLEMENTED = {
    "InPlacePodLevelResourcesVerticalScaling",
    "MatchLabelKeysInPodTopologySpread",
    "NodeDeclaredFeatures",
    "PodLevelResources",
    "SchedulerPopFromBackoffQ",
}
"""The gates with a meaning here that are on in every release."""


@pytest.mark.parametrize("release", RELEASES.values(), ids=lambda release: release.minor)
def test_gates_with_a_meaning_here_are_by_default_as_here(release: Release) -> None:
    gates = known_gates(release)
    on = {name for name in FIXED.keys() & gates if gates[name].default}
    of_release = {"StorageCapacityScoring", "VolumeLimitScaling"} if release.scores_storage_capacity else set()
    rules = {"DRADeviceTaintRules"} if release.device_taint_rules_apply else set()
    fractions = {"DRAFractionalCapacityRange"} if release.capacities_are_fractional else set()
    assert on == IMPLEMENTED | of_release | rules | fractions


def test_gates_with_a_meaning_here_are_those_of_a_release() -> None:
    every = set().union(*(known_gates(release) for release in RELEASES.values()))
    assert set(FIXED) - every == set()


@pytest.mark.parametrize(
    ("minor", "gates", "said"),
    [
        ("1.36", "GangScheduling=false", ""),
        ("1.37", "GangScheduling=false", "unrecognized feature gate: GangScheduling"),
        ("1.36", "CompositePodGroup=false", "unrecognized feature gate: CompositePodGroup"),
        ("1.38", "CompositePodGroup=true", "CompositePodGroup=true is not supported: groups of pod groups are not"),
        ("1.36", "GenericWorkload=true", "GenericWorkload=true is not supported: pods are scheduled one by one"),
        ("1.37", "TopologyAwareWorkloadScheduling=true", "TopologyAwareWorkloadScheduling=true is not supported: pod"),
        ("1.38", "DRAWorkloadResourceClaims=true", "DRAWorkloadResourceClaims=true is not supported: pods share res"),
        ("1.36", "DRAWorkloadResourceClaims=true", "DRAWorkloadResourceClaims=true is not supported: pods share res"),
        ("1.37", "PodGroupPreemptionPolicy=true", "PodGroupPreemptionPolicy=true is not supported: pod groups do not"),
        ("1.37", "StorageCapacityScoring=true", ""),
        ("1.37", "StorageCapacityScoring=false", "StorageCapacityScoring=false is not supported: the Kubernetes minor"),
        ("1.36", "DRADeviceTaintRules=true", "DRADeviceTaintRules=true is not supported: the Kubernetes minor that is"),
        ("1.37", "DRADeviceTaintRules=false", "DRADeviceTaintRules=false is not supported: the Kubernetes minor that"),
        ("1.37", "SidecarContainers=true", "unrecognized feature gate: SidecarContainers"),
        ("1.38", "PodSchedulingReadiness=true", "unrecognized feature gate: PodSchedulingReadiness"),
        ("1.37", "AllBeta=true", "AllBeta (CoordinatedLeaderElection)=true is not supported"),
    ],
)
def test_gates_are_those_of_the_release(minor: str, gates: str, said: str) -> None:
    if not said:
        apply_gates([gates], release=RELEASES[minor])
        return
    with pytest.raises(UsageError, match=re.escape(said)):
        apply_gates([gates], release=RELEASES[minor])


@pytest.mark.parametrize("minor", ["1.37", "1.38"])
def test_pods_are_scheduled_by_groups_if_the_gate_says_so(minor: str) -> None:
    release = RELEASES[minor]
    assert apply_gates([], release=release) is release
    assert apply_gates(["GenericWorkload=false"], release=release) is release
    grouped = replace(release, generic_workload=True)
    assert apply_gates(["GenericWorkload=true"], release=release) == grouped
    both = ["GenericWorkload=true", "DRAWorkloadResourceClaims=true"]
    assert apply_gates(both, release=release) == replace(grouped, workload_claims=True)


@pytest.mark.parametrize("minor", list(RELEASES))
def test_the_emulated_version_is_that_of_the_release(minor: str) -> None:
    number = int(minor.removeprefix("1."))
    for given in (minor, f"kube={minor}", f"v{minor}"):
        apply_gates([], [given], [f"1.{number - 3}", minor], RELEASES[minor])
    for other in (number - 1, number + 1):
        with pytest.raises(UsageError, match=rf"follows kube-scheduler {minor}; set {minor}$"):
            apply_gates([], [f"1.{other}"], [], RELEASES[minor])
    with pytest.raises(UsageError, match=rf"set 1\.{number - 3} to {minor}$"):
        apply_gates([], [], [f"1.{number - 4}"], RELEASES[minor])


@pytest.mark.parametrize("minor", list(RELEASES))
def test_hidden_metrics_are_those_of_the_minor_before(minor: str) -> None:
    before = f"1.{int(minor.removeprefix('1.')) - 1}"
    read = RunFlags.read({"show_hidden_metrics_for_version": before})
    assert read.metrics.show_hidden_metrics_for_version == before


def test_no_flag_is_given_by_default() -> None:
    assert RunFlags.read({}) == RunFlags()


def test_the_page_names_every_flag_without_effect_and_why() -> None:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8")
    rows = re.findall(r"^\| `--([\w-]+)` \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(one.name, one.no_effect) for one in FLAGS if one.no_effect]


def test_paths_of_requests_are_no_names_of_files() -> None:
    command = get_command(make_app()).commands["run"]  # type: ignore[attr-defined]
    given = command.make_context("run", ["--authorization-always-allow-paths=/*"]).params
    assert given["authorization_always_allow_paths"] == ["/*"]
