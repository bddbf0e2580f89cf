"""Scheduler configurations for generated cases.

Knows nothing of cases. The base switches off the default plugins whose decisions need objects other
than nodes and pods; variants change one thing each on top of it.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

API_VERSION = "kubescheduler.config.k8s.io/v1"
DISABLED = (
    "PodTopologySpread",
    "InterPodAffinity",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
    "NodeVolumeLimits",
)
BASE: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "policysched",
            "plugins": {"multiPoint": {"disabled": [{"name": name} for name in DISABLED]}},
        }
    ],
}
RESOURCES: list[dict[str, Any]] = [
    {"name": "cpu", "weight": 3},
    {"name": "memory"},
    {"name": "example.com/gpu", "weight": 5},
]


def base() -> dict[str, Any]:
    """Copy the configuration that most cases use."""
    return copy.deepcopy(BASE)


def variant(rng: Random) -> dict[str, Any]:
    """Draw a configuration that differs from the base in one respect."""
    config = base()
    profile = config["profiles"][0]
    rng.choice([_ignored, _balanced, _added_affinity, _disabled])(rng, profile)
    return config


def _args(profile: dict[str, Any], plugin: str, **args: Any) -> None:
    kind = {"apiVersion": API_VERSION, "kind": f"{plugin}Args"}
    profile["pluginConfig"] = [{"name": plugin, "args": {**kind, **args}}]


def _ignored(rng: Random, profile: dict[str, Any]) -> None:
    args = rng.choice(
        [{"ignoredResources": ["example.com/gpu"]}, {"ignoredResourceGroups": ["example.com"]}],
    )
    _args(profile, "NodeResourcesFit", **args)


def _balanced(rng: Random, profile: dict[str, Any]) -> None:
    chosen = [{"name": resource["name"]} for resource in rng.sample(RESOURCES, rng.randint(1, 3))]
    _args(profile, "NodeResourcesBalancedAllocation", resources=chosen)


def _added_affinity(rng: Random, profile: dict[str, Any]) -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd", ""]}]}
    added = rng.choice(
        [
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
            {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 7, "preference": {"matchExpressions": term["matchExpressions"]}}
                ]
            },
        ]
    )
    _args(profile, "NodeAffinity", addedAffinity=added)


def _disabled(rng: Random, profile: dict[str, Any]) -> None:
    point, name = rng.choice(
        [
            ("score", "*"),
            ("score", "NodeResourcesFit"),
            ("score", "TaintToleration"),
            ("filter", "NodeResourcesFit"),
            ("filter", "TaintToleration"),
            ("multiPoint", "ImageLocality"),
        ]
    )
    disabled = profile["plugins"].setdefault(point, {}).setdefault("disabled", [])
    disabled.append({"name": name})
