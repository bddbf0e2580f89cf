"""List of the plugins that a configuration can enable: names, extension points and origins.

No plugin is created for the list. If a factory is not a class and does not declare its return type, the points are
unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import fields
from rich.text import Text

from policysched.app.configuration.model import Plugins
from policysched.app.configuration.plugin_lists import known_points
from policysched.app.configuration.profiles import check_plugin, points_of, registry_with
from policysched.app.plugins.discovery import FoundPlugins
from policysched.app.plugins.factories import CheckedFactory
from policysched.app.report_table import ReportTable
from policysched.errors import UsageError
from policysched.model.release import DEFAULT, Release
from policysched.plugins.registry import DEFAULT_ORIGIN
from policysched.visible import visible

_ORDER: Final = tuple(one.encode_name for one in fields(Plugins))
_NOT_KNOWN: Final = "known after creation"
NOTHING_MEASURED: Final[Mapping[str, float]] = {}


@dataclass(frozen=True, slots=True)
class PluginRow:
    """A row in the list of plugins: a registered plugin with its extension points and origin."""

    name: str
    points: tuple[str, ...] | None
    """Extension points in the order in which a pod passes them; None if unknown."""
    origin: str
    problem: str = ""
    """Reason why the plugin cannot be enabled."""
    microseconds: float | None = None
    """Time that the plugin uses per decision, if measured. Units: microseconds."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON, without unknown or absent parts."""
        said = {
            "name": self.name,
            "points": self.points,
            "origin": self.origin,
            "microseconds": None if self.microseconds is None else round(self.microseconds, 1),
            "problem": self.problem or None,
        }
        return {key: value for key, value in said.items() if value is not None}


def plugin_rows(
    found: FoundPlugins, release: Release = DEFAULT, times: Mapping[str, float] = NOTHING_MEASURED
) -> Iterator[PluginRow]:
    """Yield a row for each default plugin, in calling order, then for each discovered plugin.

    Args:
        found: The discovered plugins.
        release: The Kubernetes release of the default plugins.
        times: Measured times by name. Units: microseconds.
    """
    registry, known = registry_with(found.registry, release), known_points(release)
    for name in registry:
        entry = registry[name]
        try:
            points = known[name] if entry.origin == DEFAULT_ORIGIN else _points(entry.factory)
        except UsageError as error:
            yield PluginRow(name, None, entry.origin, str(error))
        else:
            ordered = None if points is None else tuple(point for point in _ORDER if point in points)
            yield PluginRow(name, ordered, entry.origin, microseconds=times.get(name))


def plugin_table(rows: list[PluginRow]) -> ReportTable:
    """Return the table of plugins, with measured times if any were measured."""
    measured = any(row.microseconds is not None for row in rows)
    heads = ("name", "points", "origin", *(("µs per decision",) if measured else ()))
    table = ReportTable(*heads)
    table.wraps = True
    for row in rows:
        points = _NOT_KNOWN if row.points is None else " ".join(row.points)
        taken = "" if row.microseconds is None else f"{row.microseconds:,.0f}"
        cells = (row.name, "-" if row.problem else points, row.origin, *((taken,) if measured else ()))
        table.add_row(*(Text(visible(text)) for text in cells))
    return table


def _points(factory: Any) -> frozenset[str] | None:
    """Return the extension points of a factory's plugin.

    Raises:
        UsageError: the import fails, the object is not a factory, or its plugin is invalid.
    """
    checked: CheckedFactory = factory.checked()
    made = checked.makes()
    if made is None:
        return None
    check_plugin(checked.name, made)
    return points_of(made)
