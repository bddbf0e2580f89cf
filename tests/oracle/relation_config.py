"""Scheduler configurations for cases about pods that look at each other.

Knows nothing of cases. The two plugins are enabled on top of the configurations of other cases, and their
arguments vary in a quarter of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import configs, spreading

if TYPE_CHECKING:
    from random import Random

PLUGINS = ("PodTopologySpread", "InterPodAffinity")


def configuration(rng: Random, themes: frozenset[str]) -> dict[str, Any]:
    """Draw a configuration under which both plugins work, or one of them filters or scores alone.

    The two stay disabled where pods do not look at each other.
    """
    config = configs.variant(rng) if rng.random() < 0.05 else configs.base()
    if not themes & {"peers", "spread", "defaults"}:
        return config
    profile = config["profiles"][0]
    disabled = profile["plugins"]["multiPoint"]["disabled"]
    disabled[:] = [entry for entry in disabled if entry["name"] not in PLUGINS]
    if "defaults" in themes and rng.random() < 0.5:
        _args(profile, "PodTopologySpread", spreading.defaults(rng))
    if "peers" in themes and rng.random() < 0.35:
        _args(profile, "InterPodAffinity", _peer_args(rng))
    if rng.random() < 0.04:
        point = profile["plugins"].setdefault(rng.choice(["filter", "score"]), {})
        point.setdefault("disabled", []).append({"name": rng.choice(PLUGINS)})
    return config


def _peer_args(rng: Random) -> dict[str, Any]:
    found: dict[str, Any] = {"hardPodAffinityWeight": rng.choice([0, 1, 5, 100])}
    if rng.random() < 0.6:
        found["ignorePreferredTermsOfExistingPods"] = rng.random() < 0.7
    return found


def _args(profile: dict[str, Any], plugin: str, args: dict[str, Any]) -> None:
    kind = {"apiVersion": configs.API_VERSION, "kind": f"{plugin}Args"}
    entries = profile.setdefault("pluginConfig", [])
    entries[:] = [entry for entry in entries if entry["name"] != plugin]
    entries.append({"name": plugin, "args": {**kind, **args}})
