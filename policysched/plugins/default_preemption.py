"""The arguments of DefaultPreemption, which are checked and have no effect.

A configuration that kube-scheduler would refuse must not pass only because the part that would use the argument is not
there.

Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from policysched.plugins.arguments import Fault, Int32, PluginArguments


class PreemptionArguments(PluginArguments, frozen=True):
    """The arguments of DefaultPreemption."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def faults(self) -> Iterator[Fault]:
        """Name fields that are not valid, and why."""
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= percentage <= 100:
            yield "minCandidateNodesPercentage", f"{percentage} is not between 0 and 100"
        if absolute < 0:
            yield "minCandidateNodesAbsolute", f"{absolute} is below 0"
        if percentage == absolute == 0:
            yield "minCandidateNodesPercentage", "cannot be 0 together with minCandidateNodesAbsolute"
