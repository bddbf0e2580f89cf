"""Values of nodes from outside the cluster, as a metrics server has them.

Policies that ask the same query, joined by the same label, share its values: unit and greatest age are each policy's
own matter. Values stand in the server's base units (cores, bytes, seconds), because a server does not know ours.

Source: docs/language.md#the-object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class MetricKey(NamedTuple):
    """What identifies the values of a metric, whatever policies call it."""

    query: str
    node_label: str
    """The label of the result's series whose value is the node's name."""


class Sample(NamedTuple):
    """One node's value."""

    value: float
    """A finite number. Units: number, cores, bytes or seconds, as the policy's `unit` says."""
    at: float
    """When it held, never in the future. Units: seconds since 1970, UTC."""


@dataclass(frozen=True, slots=True)
class MetricAnswer:
    """What one refresh found out about one metric, for all nodes at once."""

    key: MetricKey
    samples: Mapping[str, Sample] | None
    """By node name, the whole truth: a node that is not in it has no value from now on.

    None: there was no answer; what was known before stays, and ages.
    """
    problem: str = ""
    """What is wrong, for the status of policies that read it: one line that stays the same while the problem does."""
