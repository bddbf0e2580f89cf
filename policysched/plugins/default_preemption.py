"""The arguments of DefaultPreemption, which are checked and have no effect.

Knows the shape of its `pluginConfig` entry. A configuration that kube-scheduler would refuse must not pass only because
the part that would use the argument is not there.

Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

from policysched.plugins.arguments import Arguments, Int32, PluginArguments, converted, refusal


class PreemptionArguments(PluginArguments, frozen=True):
    """The arguments of DefaultPreemption."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


def check_preemption(arguments: Arguments) -> None:
    """Check the arguments of DefaultPreemption.

    Raises:
        UsageError: one is not valid.
    """
    plugin = "DefaultPreemption"
    given = converted(plugin, arguments, PreemptionArguments)
    percentage, absolute = given.min_candidate_nodes_percentage, given.min_candidate_nodes_absolute
    if not 0 <= percentage <= 100:
        raise refusal(plugin, "minCandidateNodesPercentage", f"{percentage} is not between 0 and 100")
    if absolute < 0:
        raise refusal(plugin, "minCandidateNodesAbsolute", f"{absolute} is below 0")
    if percentage == absolute == 0:
        raise refusal(plugin, "minCandidateNodesPercentage", "cannot be 0 together with minCandidateNodesAbsolute")
