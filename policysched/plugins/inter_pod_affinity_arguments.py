"""The arguments of InterPodAffinity, as a configuration file states them, turned into the plugin.

Knows the shape of its `pluginConfig` entry. A hard weight out of range is the user's mistake, as it is
kube-scheduler's.

Source: pkg/scheduler/apis/config/v1 (InterPodAffinityArgs, defaults.go), validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

from policysched.plugins.arguments import Arguments, Int32, PluginArguments, converted, refusal
from policysched.plugins.inter_pod_affinity import DEFAULT_HARD_WEIGHT, InterPodAffinity

HIGHEST_HARD_WEIGHT = 100


class AffinityArguments(PluginArguments, frozen=True):
    """The arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Int32 = DEFAULT_HARD_WEIGHT
    ignore_preferred_terms_of_existing_pods: bool = False


def inter_pod_affinity(arguments: Arguments) -> InterPodAffinity:
    """Make InterPodAffinity.

    Raises:
        UsageError: an argument is not valid.
    """
    given = converted(InterPodAffinity.name, arguments, AffinityArguments)
    weight = given.hard_pod_affinity_weight
    if not 0 <= weight <= HIGHEST_HARD_WEIGHT:
        why = f"{weight} is not in valid range [0, {HIGHEST_HARD_WEIGHT}]"
        raise refusal(InterPodAffinity.name, "hardPodAffinityWeight", why)
    return InterPodAffinity(weight, ignore_preferred=given.ignore_preferred_terms_of_existing_pods)
