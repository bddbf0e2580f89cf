"""`check_gates`: validate `--feature-gates`, `--emulated-version` and `--min-compatibility-version`.

Unknown, locked and malformed gates are rejected with the messages of component-base. A gate that affects scheduling is
accepted only with the value that this scheduler implements. All other gates have no effect.

Source: k8s.io/component-base/{featuregate,compatibility}, v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from policysched.cli.flags.values import read_switch
from policysched.errors import UsageError

COMPONENT: Final = "kube"
VERSION: Final = "1.36"
_LISTED: Final = Path(__file__).with_name("feature_gates.txt")
_ALL: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
_ONE_BY_ONE: Final = "pods are scheduled one by one"
_ALPHA_DRA: Final = "alpha DRA features are not supported"
FIXED: Final[Mapping[str, tuple[bool, str]]] = {
    "CoordinatedLeaderElection": (False, "the process that acquires the lease leads"),
    "DRAListTypeAttributes": (False, _ALPHA_DRA),
    "DRANodeAllocatableResources": (False, _ALPHA_DRA),
    "DRAWorkloadResourceClaims": (False, _ALPHA_DRA),
    "GangScheduling": (False, _ONE_BY_ONE),
    "GenericWorkload": (False, _ONE_BY_ONE),
    "InPlacePodLevelResourcesVerticalScaling": (True, "pod-level resources of resized pods always apply"),
    "MatchLabelKeysInPodTopologySpread": (True, "matchLabelKeys of spread constraints always apply"),
    "NodeDeclaredFeatures": (True, "disable the plugin NodeDeclaredFeatures in the profiles instead"),
    "PodLevelResources": (True, "pod-level requests always apply"),
    "SchedulerPopFromBackoffQ": (True, "pods in backoff are tried if no other pod is ready"),
    "StorageCapacityScoring": (False, "VolumeBinding does not score nodes by storage capacity"),
    "TaintTolerationComparisonOperators": (False, "tolerations do not compare numbers"),
    "TopologyAwareWorkloadScheduling": (False, _ONE_BY_ONE),
    "VolumeLimitScaling": (False, "volume limits are those of CSINode objects"),
    "WorkloadAwarePreemption": (False, "victims are selected for one pod at a time"),
}
"""Gates that affect scheduling: the implemented value and the reason."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate of kube-scheduler."""

    default: bool
    stage: str
    is_locked: bool


@cache
def known_gates() -> Mapping[str, Gate]:
    """Return kube-scheduler's gates by name."""
    lines = (line.split() for line in _LISTED.read_text("ascii").splitlines() if not line.startswith("#"))
    return {name: Gate(default == "true", stage, bool(locked)) for name, default, stage, *locked in lines}


def check_gates(given: Iterable[str], emulated: Iterable[str] = (), minimum: Iterable[str] = ()) -> None:
    """Validate feature gates and versions.

    Args:
        given: `GATE=BOOL` or `COMPONENT:GATE=BOOL`.
        emulated: Versions to emulate, optionally with a component.
        minimum: Oldest supported versions of other components.

    Raises:
        UsageError: a gate or version is not supported.
    """
    for flag, versions, lowest in (("emulated", emulated, 36), ("min-compatibility", minimum, 33)):
        for text in versions:
            _check_version(f"--{flag}-version", text, lowest)
    stated = dict(_stated(given))
    for name, value in _with_groups(stated).items():
        fixed, why = FIXED.get(name, (value, ""))
        if value is not fixed:
            asked = name if name in stated else f"{next(one for one in _ALL if one in stated)} ({name})"
            raise UsageError(
                f"--feature-gates: {asked}={_text(value)} is not supported: {why}; leave it {_text(fixed)}"
            )


def _stated(given: Iterable[str]) -> Iterator[tuple[str, bool]]:
    known = known_gates()
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


def _with_groups(stated: Mapping[str, bool]) -> dict[str, bool]:
    """Return gates with those that AllAlpha and AllBeta set, except gates that are given."""
    made = dict(stated)
    for group, stage in _ALL.items():
        if group in stated:
            named = (name for name, gate in known_gates().items() if gate.stage == stage and name not in _ALL)
            made = dict.fromkeys(named, stated[group]) | made
    return made


def _check_version(flag: str, text: str, lowest: int) -> None:
    component, equals, version = text.strip().rpartition("=")
    if equals and component != COMPONENT:
        raise UsageError(f"{flag}: component not registered: {component}")
    major, _, minor = version.removeprefix("v").partition(".")
    if major != "1" or not minor.isdecimal() or not lowest <= int(minor) <= 36:
        allowed = VERSION if lowest == 36 else f"1.{lowest} to {VERSION}"
        raise UsageError(
            f'{flag} "{text}" is not supported: this scheduler emulates kube-scheduler {VERSION}; set {allowed}'
        )


def _text(value: bool) -> str:
    return str(value).lower()
