"""The arguments of PodTopologySpread: which constraints hold for pods that state none.

Arguments that cannot be used are the user's mistake and end in one line that names the plugin and the field.

Source: pkg/scheduler/apis/config/v1 (types, defaults.go), validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from policysched.errors import UsageError
from policysched.model.names import is_qualified_name
from policysched.model.objects import LabelSelector, TopologySpreadConstraint

NAME: Final = "PodTopologySpread"
SYSTEM: Final = "System"
LIST: Final = "List"
DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HOSTNAME: Final = "kubernetes.io/hostname"
SYSTEM_CONSTRAINTS: Final = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5
    ),
)
"""What holds where a configuration says nothing."""


class _Constraint(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class _Arguments(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    api_version: str = ""
    kind: str = ""
    defaulting_type: str = ""
    default_constraints: list[_Constraint] = []


def spread_defaults(arguments: Mapping[str, Any]) -> tuple[tuple[TopologySpreadConstraint, ...], bool]:
    """Give the constraints of pods that state none, and whether they are the system's own.

    Raises:
        UsageError: an argument is not valid.
    """
    try:
        given = msgspec.convert(dict(arguments), _Arguments)
    except msgspec.ValidationError as error:
        raise UsageError(f"{NAME}: {error}") from error
    kind, constraints = given.defaulting_type or SYSTEM, given.default_constraints
    if kind not in (SYSTEM, LIST):
        raise UsageError(f'{NAME}: defaultingType: "{kind}" is not supported: use {LIST} or {SYSTEM}')
    if kind == SYSTEM and constraints:
        raise UsageError(f"{NAME}: defaultingType: {SYSTEM} does not go with defaultConstraints: use {LIST}")
    _check(constraints)
    made = tuple(msgspec.convert(one, TopologySpreadConstraint, from_attributes=True) for one in constraints)
    return (SYSTEM_CONSTRAINTS, True) if kind == SYSTEM else (made, False)


def _check(constraints: list[_Constraint]) -> None:
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(constraints):
        field, fault = _fault(one)
        if (one.topology_key, one.when_unsatisfiable) in seen:
            field, fault = "", f"there is one for {one.topology_key} and {one.when_unsatisfiable} already"
        if fault:
            raise UsageError(f"{NAME}: defaultConstraints[{index}]{field}: {fault}")
        seen.add((one.topology_key, one.when_unsatisfiable))


def _fault(one: _Constraint) -> tuple[str, str]:
    """Name a field of a constraint that is not valid, and why."""
    if one.max_skew <= 0:
        return ".maxSkew", f"{one.max_skew} is not greater than 0"
    if not one.topology_key:
        return ".topologyKey", "it must not be empty"
    if not is_qualified_name(one.topology_key):
        return ".topologyKey", f'"{one.topology_key}" is not a label key'
    if one.when_unsatisfiable not in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
        return ".whenUnsatisfiable", f'"{one.when_unsatisfiable}" is neither {DO_NOT_SCHEDULE} nor {SCHEDULE_ANYWAY}'
    if one.label_selector is not None:
        return ".labelSelector", "it must not be there, because it is derived for each pod"
    return "", ""
