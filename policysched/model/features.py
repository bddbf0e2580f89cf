"""The node features that a pod cannot do without, by the names that nodes declare.

Knows specs and names. Of the features registered in v1.36 only two are ever inferred from a spec that is to be
scheduled; the others concern resizes or nothing yet, and none has a last version, so the version of the scheduler
does not matter.

Source: component-helpers/nodedeclaredfeatures (framework.go, featureset.go, features/), v0.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from policysched.model.objects import Pod

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_ON_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"
KNOWN_FEATURES: Final = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_ON_HOST_NETWORK,
)
"""Every registered feature, sorted."""


def required_features(pod: Pod) -> frozenset[str]:
    """Infer from a pod's spec which features a node must declare to run it."""
    spec = pod.spec
    rules = (rule for one in (*spec.containers, *spec.init_containers) for rule in one.restart_policy_rules)
    needed = set()
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        needed.add(USER_NAMESPACES_ON_HOST_NETWORK)
    return frozenset(needed)


def declared_features(names: Iterable[str]) -> frozenset[str]:
    """Keep those of a node's declared features that are known.

    The list is merged with the sorted registry from left to right, so a name that stands out of order in
    `status.declaredFeatures` is overlooked, as it is by kube-scheduler.
    """
    found = set()
    position = 0
    for name in names:
        while position < len(KNOWN_FEATURES) and KNOWN_FEATURES[position] < name:
            position += 1
        if position < len(KNOWN_FEATURES) and KNOWN_FEATURES[position] == name:
            found.add(name)
            position += 1
    return frozenset(found)


def satisfies(declared: Iterable[str], required: frozenset[str]) -> bool:
    """Tell whether a node with these `status.declaredFeatures` has all that is required."""
    return not required or required <= declared_features(declared)
