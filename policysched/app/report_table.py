"""`ReportTable`: a table that can be made narrower to fit the output."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from rich import box
from rich.table import Table

SHORT_NAMES: Final[Mapping[str, str]] = {
    "DynamicResources": "Devices",
    "ImageLocality": "Images",
    "InterPodAffinity": "Pods",
    "NodeAffinity": "Affinity",
    "NodeName": "Name",
    "NodePorts": "Ports",
    "NodeResourcesBalancedAllocation": "Balance",
    "NodeResourcesFit": "Fit",
    "NodeUnschedulable": "Cordon",
    "NodeVolumeLimits": "Limits",
    "PodTopologySpread": "Spread",
    "TaintToleration": "Taints",
    "VolumeBinding": "Volumes",
    "VolumeRestrictions": "Restrict",
    "VolumeZone": "Zones",
}
"""Short column headers for the default plugins, by plugin name."""
_LONGEST: Final = 12
"""Longest name of a policy or plugin that is used whole as a short header. Units: characters."""


class ReportTable(Table):
    """A table for reports; when it is made narrower, its first column (the names) stays whole.

    Attributes:
        sums_up: Headers of columns that become part of one line below the table if all their cells are equal.
        least: Headers of columns in the order in which they are cut or left out; default: from the last one on.
        short: Short headers, by header.
        wraps: Whether texts are wrapped between words in place of being cut.
    """

    def __init__(self, *headers: Any, **more: Any) -> None:
        super().__init__(*headers, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True, **more)
        self.sums_up: Collection[str] = ()
        self.least: tuple[str, ...] = ()
        self.short: Mapping[str, str] = {}
        self.wraps = False


def short_names(plugins: Collection[str]) -> dict[str, str]:
    """Return short column headers by name of plugin or policy; a long name without a short header gets a number."""
    found: dict[str, str] = {}
    for plugin in plugins:
        name = SHORT_NAMES.get(plugin) or plugin.partition("/")[2] or plugin
        is_usable = len(name) <= _LONGEST and name not in found.values()
        found[plugin] = name if is_usable else f"#{len(found) + 1}"
    return found
