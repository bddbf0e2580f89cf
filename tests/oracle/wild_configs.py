"""Scheduler configurations that are often wrong, to see which of them are refused.

Knows nothing of cases: no decision is made under them. Each is drawn as something that would work and then, in half
the cases, broken in one place, so that a refusal has one reason and an acceptance is no accident.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeAlias

from policysched.model.release import DEFAULT, RELEASES, Release
from policysched.plugins.registry import MULTI_POINT, points_of_defaults

from . import arguments, spreading
from .configs import API_VERSION, NEEDED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

Thing: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[Any, ...]
ActsAt: TypeAlias = "Mapping[str, frozenset[str]]"

LATER = sorted(frozenset().union(*(one.configuration_fields for one in RELEASES.values())))
"""Fields that only some releases have."""
ARGUMENTS: dict[str, Callable[[Random], Any]] = {
    "NodeResourcesFit": arguments.fit,
    "NodeResourcesBalancedAllocation": arguments.balance,
    "NodeAffinity": arguments.affinity,
    "DefaultPreemption": arguments.preemption,
    "VolumeBinding": arguments.volume_binding,
    "DynamicResources": arguments.dynamic_resources,
    "InterPodAffinity": arguments.peers,
    "PodTopologySpread": spreading.defaults,
    "NodeName": lambda rng: rng.choice([{}, {"any": 1}, [1], "text", None]),
    "SomebodyElses": lambda rng: rng.choice([{}, {"any": 1}, [1], None]),
}
NAMES = ("", "*", "NotThere", "EBSLimits", *points_of_defaults(RELEASES["1.37"]))
DATA = ("certData", "keyData", "caData")
"""Fields of bytes. kube-scheduler also reads them from lists of numbers, which we refuse."""
NUMBERS = (-(2**31) - 1, -101, -1, 0, 1, 2, 3, 10, 11, 99, 100, 101, 2**31 - 1, 2**31, 2**63)
TEXTS = ("", "x", "a/b", "a/b/c", "/b", "not a name", "-1s", "0.5s", "LeastAllocated", API_VERSION, "Like", "Exists")


def points_among(acts_at: ActsAt) -> list[str]:
    return sorted({point for points in acts_at.values() for point in points} | {"postBind"})


def wild(rng: Random, release: Release = DEFAULT, *, unharmed: bool = False) -> Thing:
    """Draw a configuration of a release, in half the cases with one mistake unless it has to be unharmed."""
    acts_at = points_of_defaults(release)
    profiles = [profile(rng, f"p{number}", acts_at) for number in range(rng.choice([1, 1, 1, 1, 2, 3]))]
    config: Thing = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", "profiles": profiles}
    if rng.random() < 0.1:
        config["percentageOfNodesToScore"] = rng.choice([0, 50, 100])
    if rng.random() < 0.1:
        _sort_alike(rng, profiles)
    if len(profiles) == 1 and rng.random() < 0.2:
        del profiles[0]["schedulerName"]
    return config if unharmed or rng.random() >= 0.5 else broken(rng, config)


def profile(rng: Random, name: str, acts_at: ActsAt) -> Thing:
    """Draw a profile that would work."""
    plugins: Thing = {}
    if rng.random() < 0.5:
        plugins[MULTI_POINT] = _multi_point(rng, acts_at)
    for point in rng.sample(points_among(acts_at), rng.choice([0, 1, 1, 2, 4])):
        if point != "queueSort":
            plugins[point] = _set(rng, point, acts_at)
    if "bind" in plugins:
        plugins["bind"]["enabled"] = [{"name": "DefaultBinder"}]
    found: Thing = {"schedulerName": name, "plugins": plugins}
    if rng.random() < 0.5:
        chosen = rng.sample(sorted(ARGUMENTS), rng.randint(1, 2))
        found["pluginConfig"] = [_arguments(rng, plugin) for plugin in chosen]
    return found


def _set(rng: Random, point: str, acts_at: ActsAt) -> Thing:
    acting = sorted(name for name, points in acts_at.items() if point in points)
    found: Thing = {}
    if acting and rng.random() < 0.7:
        found["enabled"] = _entries(rng, rng.sample(acting, rng.randint(1, min(3, len(acting)))))
    if rng.random() < 0.5:
        found["disabled"] = _entries(rng, [rng.choice([*acting, *acting, *NAMES])])
    return found


def _multi_point(rng: Random, acts_at: ActsAt) -> Thing:
    chosen = [name for name in rng.sample(sorted(acts_at), rng.randint(0, 5)) if name not in NEEDED]
    if rng.random() < 0.4:
        order = [*chosen, *NEEDED]
        rng.shuffle(order)
        return {"disabled": [{"name": "*"}], "enabled": _entries(rng, order)}
    off = [name for name in rng.sample(sorted(acts_at), rng.randint(0, 3)) if name not in NEEDED]
    return {"disabled": _entries(rng, off), "enabled": _entries(rng, chosen)}


def _entries(rng: Random, names: list[str]) -> list[Thing]:
    return [{"name": name} if rng.random() < 0.5 else {"name": name, "weight": rng.choice([0, 1, 7])} for name in names]


def _arguments(rng: Random, plugin: str) -> Thing:
    args = ARGUMENTS[plugin](rng)
    if isinstance(args, dict) and rng.random() < 0.5:
        args = {"apiVersion": API_VERSION, "kind": f"{plugin}Args", **args}
    return {"name": plugin, "args": args} if rng.random() < 0.9 else {"name": plugin}


def _sort_alike(rng: Random, profiles: list[Thing]) -> None:
    sorting = rng.choice([{"enabled": [{"name": "PrioritySort"}]}, {"disabled": [{"name": "Other"}]}])
    for one in profiles:
        one["plugins"]["queueSort"] = copy.deepcopy(sorting)


def whole(rng: Random, release: Release = DEFAULT) -> Thing:
    """Draw a configuration with all its fields, in more than half of the cases with one to three mistakes."""
    config = wild(rng, release, unharmed=True)
    for field, draw in rng.sample(sorted(FIELDS.items()), rng.choice([0, 1, 2, 5, len(FIELDS)])):
        config[field] = draw(rng)
    for _ in range(rng.choice([0, 0, 1, 1, 1, 2, 3])):
        config = broken(rng, config, tuple(config))
    return config


def _election(rng: Random) -> Thing:
    return _some(
        rng,
        leaderElect=rng.random() < 0.5,
        leaseDuration=rng.choice(DURATIONS),
        renewDeadline=rng.choice(DURATIONS),
        retryPeriod=rng.choice(DURATIONS),
        resourceLock=rng.choice(["", "leases", "endpoints"]),
        resourceName=rng.choice(["", "mine"]),
        resourceNamespace=rng.choice(["", "ours"]),
    )


def _connection(rng: Random) -> Thing:
    return _some(
        rng,
        kubeconfig=rng.choice(["", "/etc/kubernetes/scheduler.conf"]),
        acceptContentTypes=rng.choice(["", "application/json"]),
        contentType=rng.choice(["", "application/json"]),
        qps=rng.choice([0, 0.5, 100, 1000.25]),
        burst=rng.choice([0, 1, 200, -1]),
    )


def _extender(rng: Random) -> Thing:
    names = ["example.com/gpu", "a.io/b", "cpu", "kubernetes.io/x", "bad name", "", "requests.a.io/b"]
    resources = [
        _some(rng, name=rng.choice(names[: rng.choice([2, 2, 7])]), ignoredByScheduler=rng.random() < 0.5)
        for _ in range(rng.choice([0, 1, 1, 2]))
    ]
    texts = {name: rng.choice(["", "x"]) for name in ("serverName", "certFile", "keyFile", "caFile")}
    data = {name: rng.choice(["", "AAEC", "UEVN"]) for name in DATA}
    return _some(
        rng,
        urlPrefix=rng.choice(["http://127.0.0.1:8888", ""]),
        filterVerb="filter",
        preemptVerb="preempt",
        prioritizeVerb=rng.choice(["", "prioritize"]),
        weight=rng.choice([-1, 0, 1, 5, 2**40]),
        bindVerb=rng.choice(["", "", "bind"]),
        enableHTTPS=rng.random() < 0.5,
        tlsConfig=_some(rng, insecure=rng.random() < 0.5, **texts, **data),
        httpTimeout=rng.choice(DURATIONS),
        nodeCacheCapable=rng.random() < 0.5,
        managedResources=resources,
        ignorable=rng.random() < 0.5,
    )


def _some(rng: Random, **fields: Any) -> Thing:
    return {name: value for name, value in fields.items() if rng.random() < 0.6}


DURATIONS = ("10s", "0s", "15s", "1m30s", "-5s", "1.5h", "2500ms", "100us", "7ns", "26h3m0.25s")
FIELDS: dict[str, Callable[[Random], Any]] = {
    "parallelism": lambda rng: rng.choice([1, 16, 100]),
    "leaderElection": _election,
    "clientConnection": _connection,
    "enableProfiling": lambda rng: rng.random() < 0.5,
    "enableContentionProfiling": lambda rng: rng.random() < 0.5,
    "percentageOfNodesToScore": lambda rng: rng.choice([0, 50, 100]),
    "podInitialBackoffSeconds": lambda rng: rng.choice([1, 2, 10, 11]),
    "podMaxBackoffSeconds": lambda rng: rng.choice([1, 10, 60]),
    "extenders": lambda rng: [_extender(rng) for _ in range(rng.choice([0, 1, 1, 2]))],
    "delayCacheUntilActive": lambda rng: rng.random() < 0.5,
}


def broken(rng: Random, config: Thing, fields: tuple[str, ...] = ("profiles",)) -> Thing:
    """Change one place of a configuration: often into a mistake, sometimes into something else that is right."""
    made = copy.deepcopy(config)
    *above, last = rng.choice([path for path in _paths(made, ()) if path[0] in fields])
    holder: Any = made
    for step in above:
        holder = holder[step]
    rng.choice([_replace, _replace, _rename, _drop, _repeat])(rng, holder, last)
    return made


def _paths(value: Any, above: Path) -> list[Path]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for step, child in steps for path in ((*above, step), *_paths(child, (*above, step)))]


def _replace(rng: Random, holder: Any, step: Any) -> None:
    known = holder[step]
    if isinstance(known, int):
        holder[step] = rng.choice(NUMBERS)
    elif isinstance(known, str):
        holder[step] = rng.choice(NAMES if step == "name" else (*TEXTS, rng.choice(NAMES)))
    if rng.random() < 0.15:
        holder[step] = rng.choice([None, 5, "5", {}, True, *([] if step in DATA else [[]])])


def _rename(rng: Random, holder: Any, step: Any) -> None:
    if isinstance(holder, dict):
        other = rng.choice([step.upper(), step + "s", step.capitalize(), *points_among(points_of_defaults()), *LATER])
        holder[other] = holder.pop(step)


def _drop(rng: Random, holder: Any, step: Any) -> None:
    del holder[step]


def _repeat(rng: Random, holder: Any, step: Any) -> None:
    if isinstance(holder, list):
        holder.append(copy.deepcopy(holder[step]))
    elif isinstance(holder[step], list):
        holder[step] *= 2
