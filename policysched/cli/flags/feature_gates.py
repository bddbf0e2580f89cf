"""`apply_gates`: validate `--feature-gates`, `--emulated-version` and `--min-compatibility-version`.

Unknown, locked and malformed gates are rejected with the messages of component-base. A gate that affects scheduling is
accepted only with its default, except GenericWorkload where it is beta, and with it TopologyAwareWorkloadScheduling and
DRAWorkloadResourceClaims. All other gates have no effect.
`feature_gates_<minor>.txt` lists a release's gates.

Source: k8s.io/component-base/{featuregate,compatibility}, pkg/features and the features of apiserver, client-go and
component-base, v1.36, v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from policysched.cli.flags.values import read_switch
from policysched.errors import UsageError
from policysched.model.release import DEFAULT, Release, with_pod_groups

COMPONENT: Final = "kube"
_COMPATIBLE: Final = 3
"""Largest number of minors by which --min-compatibility-version may be older than kube-scheduler's version."""
_ALL: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
_ONE_BY_ONE: Final = "pods are scheduled one by one"
_BY_MINOR: Final = "the Kubernetes minor that is followed decides"
_ALPHA_DRA: Final = "alpha DRA features are not supported"
FIXED: Final[Mapping[str, str]] = {
    "CompositePodGroup": "groups of pod groups are not supported",
    "CoordinatedLeaderElection": "the process that acquires the lease leads",
    "DRADerivedAttributes": _ALPHA_DRA,
    "DRADeviceCompatibilityGroups": _ALPHA_DRA,
    "DRADeviceTaintRules": _BY_MINOR,
    "DRAFractionalCapacityRange": _BY_MINOR,
    "DRAListTypeAttributes": _ALPHA_DRA,
    "DRANodeAllocatableResources": _ALPHA_DRA,
    "DRAOptionalNodeOperations": _ALPHA_DRA,
    "DRAWorkloadResourceClaims": "pods share resource claims of their pod group only with GenericWorkload",
    "GangScheduling": _ONE_BY_ONE,
    "GenericWorkload": _ONE_BY_ONE,
    "InPlacePodLevelResourcesVerticalScaling": "pod-level resources of resized pods always apply",
    "InPlacePodVerticalScalingSchedulerPreemption": "pods that wait for a resize do not preempt",
    "InterPodAffinityHostnameFastPath": "nodes with equal host names are different nodes",
    "MatchLabelKeysInPodTopologySpread": "matchLabelKeys of spread constraints always apply",
    "NodeDeclaredFeatures": "disable the plugin NodeDeclaredFeatures in the profiles instead",
    "PodGroupPreemptionPolicy": "pod groups do not preempt pods",
    "PodLevelResources": "pod-level requests always apply",
    "SchedulerPopFromBackoffQ": "pods in backoff are tried if no other pod is ready",
    "StorageCapacityScoring": _BY_MINOR,
    "TaintTolerationComparisonOperators": "tolerations do not compare numbers",
    "TopologyAwareWorkloadScheduling": "pod groups are placed by topology only with GenericWorkload",
    "VolumeLimitScaling": _BY_MINOR,
    "WorkloadAwarePreemption": "victims are selected for one pod at a time",
}
"""Feature gates that affect scheduling and cannot be changed from their default, each with the reason."""
WORKLOAD: Final = "GenericWorkload"
"""The feature gate that schedules pods by pod groups; it can be turned on in minors in which it is beta."""
TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"
"""The feature gate that places pod groups by topology; it needs the gate `WORKLOAD`."""
CLAIMS: Final = "DRAWorkloadResourceClaims"
"""The feature gate with which pods share the resource claims of their pod group; it needs the gate `WORKLOAD`."""
GROUP_GATES: Final = (WORKLOAD, TOPOLOGY, CLAIMS)
"""The feature gates about pod groups that can be turned on."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate of kube-scheduler."""

    default: bool
    stage: str
    is_locked: bool


@lru_cache(maxsize=8)
def known_gates(release: Release = DEFAULT) -> Mapping[str, Gate]:
    """Return the feature gates of the kube-scheduler of a Kubernetes release, by name."""
    listed = Path(__file__).with_name(f"feature_gates_{release.minor}.txt")
    lines = (line.split() for line in listed.read_text("ascii").splitlines() if not line.startswith("#"))
    return {name: Gate(default == "true", stage, bool(locked)) for name, default, stage, *locked in lines}


def apply_gates(
    given: Iterable[str], emulated: Iterable[str] = (), minimum: Iterable[str] = (), release: Release = DEFAULT
) -> Release:
    """Validate feature gates and versions; return the Kubernetes release with the given gates turned on or off.

    Args:
        given: `GATE=BOOL` or `COMPONENT:GATE=BOOL`.
        emulated: Versions to emulate, optionally with a component.
        minimum: Oldest supported versions of other components.
        release: The release whose gates and version are valid.

    Raises:
        UsageError: a gate or version is not supported.
    """
    for flag, versions, minors_before in (("emulated", emulated, 0), ("min-compatibility", minimum, _COMPATIBLE)):
        for text in versions:
            _check_version(f"--{flag}-version", text, release, minors_before)
    known = known_gates(release)
    stated = dict(_stated(given, known))
    gates = _with_groups(stated, known)
    by_topology, shares = (gates.get(name, known[name].default) for name in (TOPOLOGY, CLAIMS))
    grouped = with_pod_groups(release, by_topology=by_topology, shares_claims=shares) if gates.get(WORKLOAD) else None
    for name, value in gates.items():
        if name in FIXED and value is not (fixed := known[name].default) and not (grouped and name in GROUP_GATES):
            asked = name if name in stated else f"{next(one for one in _ALL if one in stated)} ({name})"
            raise UsageError(
                f"--feature-gates: {asked}={_text(value)} is not supported: {FIXED[name]}; leave it {_text(fixed)}"
            )
    return grouped or release


def _stated(given: Iterable[str], known: Mapping[str, Gate]) -> Iterator[tuple[str, bool]]:
    for text in given:
        component, colon, rest = text.strip().rpartition(":")
        if colon and component != COMPONENT:
            raise UsageError(f"--feature-gates: component not registered: {component}")
        name, equals, value = rest.partition("=")
        name = name.strip()
        if not equals:
            raise UsageError(f"--feature-gates: missing bool value for {name}")
        if name not in known:
            raise UsageError(f"--feature-gates: unrecognized feature gate: {name}")
        try:
            stated = read_switch(value.strip())
        except ValueError as error:
            raise UsageError(f'--feature-gates: {name} "{value}" {error}') from error
        gate = known[name]
        if gate.is_locked and stated is not gate.default:
            asked, locked = _text(stated), _text(gate.default)
            raise UsageError(
                f"--feature-gates: cannot set feature gate {name} to {asked}, feature is locked to {locked}"
            )
        yield name, stated


def _with_groups(stated: Mapping[str, bool], known: Mapping[str, Gate]) -> dict[str, bool]:
    """Return the given gates and the gates that AllAlpha and AllBeta set; a gate that is given itself has priority."""
    made = dict(stated)
    for group, stage in _ALL.items():
        if group in stated:
            named = (name for name, gate in known.items() if gate.stage == stage and name not in _ALL)
            made = dict.fromkeys(named, stated[group]) | made
    return made


def _check_version(flag: str, text: str, release: Release, minors_before: int) -> None:
    component, equals, version = text.strip().rpartition("=")
    if equals and component != COMPONENT:
        raise UsageError(f"{flag}: component not registered: {component}")
    major, _, minor = version.removeprefix("v").partition(".")
    highest = int(release.minor.partition(".")[2])
    lowest = highest - minors_before
    if major != "1" or not minor.isdecimal() or not lowest <= int(minor) <= highest:
        allowed = release.minor if lowest == highest else f"1.{lowest} to {release.minor}"
        raise UsageError(
            f'{flag} "{text}" is not supported: this scheduler follows kube-scheduler {release.minor}; set {allowed}'
        )


def _text(value: bool) -> str:
    return str(value).lower()
