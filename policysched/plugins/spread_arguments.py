"""The arguments of PodTopologySpread: which constraints hold for pods that state none.

Source: pkg/scheduler/apis/config/v1 (types, defaults.go), validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from policysched.model.objects import TopologySpreadConstraint
from policysched.model.selection.names import is_qualified_name
from policysched.plugins.arguments import Arguments, PluginArguments, converted, refusal
from policysched.plugins.pod_topology_spread import PodTopologySpread
from policysched.plugins.pod_topology_spread_constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    Defaults,
)

NAME: Final = PodTopologySpread.name
SYSTEM: Final = "System"
LIST: Final = "List"
MOST: Final = 2**31 - 1


class SpreadArguments(PluginArguments, frozen=True):
    """The arguments of PodTopologySpread."""

    defaulting_type: str = ""
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()


def pod_topology_spread(arguments: Arguments) -> PodTopologySpread:
    """Make PodTopologySpread.

    Raises:
        UsageError: an argument is not valid.
    """
    given = converted(NAME, arguments, SpreadArguments)
    kind, constraints = given.defaulting_type or SYSTEM, given.default_constraints
    if kind not in (SYSTEM, LIST):
        raise refusal(NAME, "defaultingType", f'"{kind}" is neither {LIST} nor {SYSTEM}')
    if kind == SYSTEM and constraints:
        raise refusal(NAME, "defaultingType", f"{SYSTEM} does not go with defaultConstraints")
    _check(constraints)
    return PodTopologySpread(SYSTEM_DEFAULTS if kind == SYSTEM else Defaults(constraints))


def _check(constraints: Sequence[TopologySpreadConstraint]) -> None:
    for index, one in enumerate(constraints):
        for field, fault in _faults(one):
            raise refusal(NAME, f"defaultConstraints[{index}].{field}", fault)
        same = (one.topology_key, one.when_unsatisfiable)
        if same in {(other.topology_key, other.when_unsatisfiable) for other in constraints[:index]}:
            raise refusal(NAME, f"defaultConstraints[{index}]", f"there is one for {' and '.join(same)} already")


def _faults(one: TopologySpreadConstraint) -> Iterator[tuple[str, str]]:
    """Name fields of a constraint that are not valid, and why."""
    if not 0 < one.max_skew <= MOST:
        yield "maxSkew", f"{one.max_skew} is not between 1 and {MOST}"
    if not is_qualified_name(one.topology_key):
        yield "topologyKey", f'"{one.topology_key}" is not a name of a label'
    if one.when_unsatisfiable not in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
        yield "whenUnsatisfiable", f'"{one.when_unsatisfiable}" is neither {DO_NOT_SCHEDULE} nor {SCHEDULE_ANYWAY}'
    if one.label_selector is not None:
        yield "labelSelector", "is not for default constraints: it is derived for each pod"
