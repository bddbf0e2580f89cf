"""Scheduler configurations for cases about pods that look at each other.

Knows nothing of cases. The two plugins are enabled on top of the configurations of other cases; their
arguments, their weights, their places and the points where they act vary in some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import arguments, configs, spreading

if TYPE_CHECKING:
    from random import Random

PLUGINS = ("PodTopologySpread", "InterPodAffinity")


def configuration(rng: Random, themes: frozenset[str]) -> dict[str, Any]:
    """Draw a configuration under which both plugins work, or one of them in part.

    The two stay disabled where pods do not look at each other; now and then all others are enabled, too.
    """
    config = configs.variant(rng) if rng.random() < 0.05 else configs.base()
    if not themes & {"peers", "spread", "defaults"}:
        return config
    profile = config["profiles"][0]
    disabled = profile["plugins"]["multiPoint"]["disabled"]
    disabled[:] = [entry for entry in disabled if entry["name"] not in PLUGINS]
    if rng.random() < 0.15:
        disabled[:] = [entry for entry in disabled if entry["name"] not in configs.DISABLED]
    if "defaults" in themes and rng.random() < 0.5:
        configs.put_arguments(profile, "PodTopologySpread", spreading.defaults(rng))
    if "peers" in themes and rng.random() < 0.35:
        configs.put_arguments(profile, "InterPodAffinity", arguments.peers(rng))
    if rng.random() < 0.08:
        _rearrange(rng, profile)
    return config


def _rearrange(rng: Random, profile: dict[str, Any]) -> None:
    """Let a plugin filter first, weigh more or less, or act at one point of two that belong together."""
    name = rng.choice(PLUGINS)
    point, field, entry = rng.choice(
        [
            ("filter", "enabled", {"name": name}),
            ("multiPoint", "enabled", {"name": name, **configs.weight(rng)}),
            ("score", "enabled", {"name": name, **configs.weight(rng)}),
            *((point, "disabled", {"name": name}) for point in ("preFilter", "filter", "preScore", "score")),
        ]
    )
    entries = profile["plugins"].setdefault(point, {}).setdefault(field, [])
    if name not in {known["name"] for known in entries}:
        entries.append(entry)
