"""Scheduler configurations for generated cases.

Knows nothing of cases. The base switches off the default plugins whose decisions need objects other
than nodes and pods; variants change one to three things on top of it, all of them valid.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from . import arguments, spreading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

Thing: TypeAlias = dict[str, Any]

API_VERSION = "kubescheduler.config.k8s.io/v1"
DISABLED = (
    "PodTopologySpread",
    "InterPodAffinity",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
    "NodeVolumeLimits",
)
BASE: Thing = {
    "apiVersion": API_VERSION,
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "policysched",
            "plugins": {"multiPoint": {"disabled": [{"name": name} for name in DISABLED]}},
        }
    ],
}
NEEDED = ("PrioritySort", "DefaultBinder")
ALONE = ("NodeAffinity", "VolumeZone", "NodeVolumeLimits")
"""The plugins that filter without PreFilter."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The plugins that a kind of case is about, by point.

    `pre_filters` and `pre_scores` act at two points each.
    """

    pre_filters: tuple[str, ...]
    pre_scores: tuple[str, ...]

    @property
    def filters(self) -> tuple[str, ...]:
        """All that filter."""
        return ("NodeUnschedulable", "NodeName", "TaintToleration", *self.pre_filters)

    @property
    def scores(self) -> tuple[str, ...]:
        """All that score."""
        return (*self.pre_scores, "DynamicResources", "ImageLocality")

    @property
    def everything(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(dict.fromkeys([*self.filters, *self.scores]))

    def base(self) -> Thing:
        """Make the configuration in which these are enabled."""
        config = copy.deepcopy(BASE)
        off = [{"name": name} for name in DISABLED if name not in self.everything]
        config["profiles"][0]["plugins"]["multiPoint"]["disabled"] = off
        return config


PLAIN = Pool(
    ("NodeAffinity", "NodePorts", "NodeResourcesFit", "DynamicResources", "NodeDeclaredFeatures"),
    ("TaintToleration", "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation"),
)
PEERS = ("PodTopologySpread", "InterPodAffinity")
RELATED = Pool((*PLAIN.pre_filters, *PEERS), (*PLAIN.pre_scores, *PEERS))
"""For cases about pods that look at each other."""
VOLUMES = Pool(
    (*PLAIN.pre_filters, "VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits"),
    (*PLAIN.pre_scores, "VolumeBinding"),
)
"""For cases about volumes."""


def base() -> Thing:
    """Copy the configuration that most cases use."""
    return copy.deepcopy(BASE)


def variant(rng: Random, pool: Pool = PLAIN) -> Thing:
    """Draw a configuration that differs from the pool's base in one to three respects."""
    config = pool.base()
    profile = config["profiles"][0]
    changes = [*CHANGES, *([_peers] * 2 if pool is RELATED else [_binding] if pool is VOLUMES else [])]
    for change in rng.sample(changes, rng.choices([1, 2, 3], [5, 3, 1])[0]):
        change(rng, profile, pool)
    return config


def weight(rng: Random) -> Thing:
    """Draw a plugin's weight; 0 and none at all count as 1."""
    drawn = rng.choice([None, 0, 1, 2, 5, 100, 30_000_000])
    return {} if drawn is None else {"weight": drawn}


def put_arguments(profile: Thing, plugin: str, args: Thing) -> None:
    """Give a plugin arguments in place of those that it may have."""
    entries = profile.setdefault("pluginConfig", [])
    entries[:] = [entry for entry in entries if entry["name"] != plugin]
    entries.append({"name": plugin, "args": {"apiVersion": API_VERSION, "kind": f"{plugin}Args", **args}})


def _put(profile: Thing, point: str, field: str, entries: Iterable[Thing]) -> None:
    plugins = profile["plugins"].setdefault(point, {}).setdefault(field, [])
    known = {entry["name"] for entry in plugins}
    plugins.extend(entry for entry in entries if entry["name"] not in known)


def _named(*names: str) -> list[Thing]:
    return [{"name": name} for name in names]


def _fit(rng: Random, profile: Thing, pool: Pool) -> None:
    put_arguments(profile, "NodeResourcesFit", arguments.fit(rng))


def _balance(rng: Random, profile: Thing, pool: Pool) -> None:
    put_arguments(profile, "NodeResourcesBalancedAllocation", arguments.balance(rng))


def _affinity(rng: Random, profile: Thing, pool: Pool) -> None:
    put_arguments(profile, "NodeAffinity", arguments.affinity(rng))


def _peers(rng: Random, profile: Thing, pool: Pool) -> None:
    plugin = rng.choice(PEERS)
    put_arguments(profile, plugin, spreading.defaults(rng) if plugin == PEERS[0] else arguments.peers(rng))


def _binding(rng: Random, profile: Thing, pool: Pool) -> None:
    put_arguments(profile, "VolumeBinding", arguments.volume_binding(rng))


def _weights(rng: Random, profile: Thing, pool: Pool) -> None:
    """Enable plugins once more that were enabled, at score or everywhere."""
    point = rng.choice(["multiPoint", "score"])
    _put(
        profile,
        point,
        "enabled",
        [{"name": name, **weight(rng)} for name in rng.sample(pool.scores, rng.randint(1, 3))],
    )


def _negative_weight(rng: Random, profile: Thing, pool: Pool) -> None:
    """Give the heaviest plugin first, so that the sum of weights never falls below 0."""
    if "enabled" in profile["plugins"].get("score", {}):
        return
    chosen = rng.sample(pool.scores, 2)
    heavy = {"name": chosen[0], "weight": 50}
    _put(profile, "score", "enabled", [heavy, {"name": chosen[1], "weight": rng.choice([-1, -3, -20])}])


def _first_filters(rng: Random, profile: Thing, pool: Pool) -> None:
    _put(profile, "filter", "enabled", _named(*rng.sample(pool.filters, rng.randint(1, 4))))


def _prepared_first(rng: Random, profile: Thing, pool: Pool) -> None:
    _put(profile, "preFilter", "enabled", _named(*rng.sample(pool.pre_filters, rng.randint(1, 3))))


def _last(rng: Random, profile: Thing, pool: Pool) -> None:
    """Move plugins to the end of everything."""
    chosen = rng.sample(pool.everything, rng.randint(1, 2))
    _put(profile, "multiPoint", "disabled", _named(*chosen))
    _put(profile, "multiPoint", "enabled", [{"name": name, **weight(rng)} for name in chosen])


def _halves(rng: Random, profile: Thing, pool: Pool) -> None:
    """Take plugins away from one of two points that belong together; few of them can do without the first."""
    point, names = rng.choice(
        [
            ("preFilter", ALONE),
            ("preFilter", pool.pre_filters),
            ("preFilter", ("NodeName", "NodeUnschedulable", "TaintToleration")),
            ("filter", pool.filters),
            ("filter", ("NodeAffinity",)),
            ("preScore", ("NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation")),
            ("preScore", pool.pre_scores),
            ("score", pool.scores),
        ]
    )
    _put(profile, point, "disabled", _named(*rng.sample(names, min(len(names), rng.choice([1, 1, 2])))))


def _none(rng: Random, profile: Thing, pool: Pool) -> None:
    """Take everything away from a point, and put some plugins back."""
    point, names = rng.choice(
        [
            ("preFilter", pool.pre_filters),
            ("filter", pool.filters),
            ("preScore", pool.pre_scores),
            ("score", pool.scores),
        ]
    )
    _put(profile, point, "disabled", _named("*"))
    _put(profile, point, "enabled", _named(*rng.sample(names, rng.choice([0, 1, 2, len(names)]))))


def _anew(rng: Random, profile: Thing, pool: Pool) -> None:
    """Enable everything that is wanted by hand, in an order of its own."""
    chosen = rng.sample(pool.everything, rng.randint(1, len(pool.everything)))
    _put(profile, "multiPoint", "disabled", _named("*"))
    _put(profile, "multiPoint", "enabled", [*_named(*NEEDED), *({"name": name, **weight(rng)} for name in chosen)])


def _off(rng: Random, profile: Thing, pool: Pool) -> None:
    _put(profile, "multiPoint", "disabled", _named(*rng.sample(pool.everything, rng.randint(1, 2))))


CHANGES: list[Callable[[Random, Thing, Pool], None]] = [
    _fit,
    _balance,
    _affinity,
    _weights,
    _negative_weight,
    _first_filters,
    _prepared_first,
    _last,
    _halves,
    _none,
    _anew,
    _off,
]
CHANGES += [_fit] * 3 + [_affinity]
