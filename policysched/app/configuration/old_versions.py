"""Configuration files of older versions (v1beta1 to v1beta3), read as those of v1.

Knows what has gone since: the limit plugins of single clouds, whose work NodeVolumeLimits does, and SelectorSpread,
whose work PodTopologySpread does. Such names are dropped with a warning; in a v1 file they stay, and are refused. All
defaults are v1's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from policysched.plugins.arguments import API_VERSION

log = logging.getLogger(__name__)
OLD_VERSIONS: Final = tuple(f"kubescheduler.config.k8s.io/v1beta{number}" for number in (1, 2, 3))
REPLACED: Final = {
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
    "SelectorSpread": "PodTopologySpread",
}
"""Plugins that are gone, with those that do their work."""


def as_v1(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give a configuration as v1 writes it; one that is of no older version is given back as it is."""
    if config.get("apiVersion") not in OLD_VERSIONS:
        return config
    gone: set[str] = set()
    made = _renewed(config, gone)
    for name in sorted(gone):
        log.warning("plugin %s is no longer there and is left out: %s does its work", name, REPLACED[name])
    return {**made, "apiVersion": API_VERSION}


def _renewed(value: Any, gone: set[str]) -> Any:
    """Copy a value without the plugins that are gone, noting their names."""
    if isinstance(value, Mapping):
        return {key: API_VERSION if _is_version(key, item) else _renewed(item, gone) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_renewed(item, gone) for item in value if not _is_gone(item, gone)]
    return value


def _is_version(key: str, item: Any) -> bool:
    return key == "apiVersion" and item in OLD_VERSIONS


def _is_gone(item: Any, gone: set[str]) -> bool:
    name = item.get("name") if isinstance(item, Mapping) else None
    if not isinstance(name, str) or name not in REPLACED:
        return False
    gone.add(name)
    return True
