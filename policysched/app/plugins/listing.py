"""List the plugins that a configuration may enable: names, points and origins.

Nothing is made for it: of a factory that is no class, and does not say what it returns, the points are not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import fields
from rich.text import Text

from policysched.app.configuration.model import Plugins
from policysched.app.configuration.plugin_lists import POINTS_OF
from policysched.app.configuration.profiles import check_plugin, points_of, registry_with
from policysched.app.plugins.discovery import FoundPlugins
from policysched.app.plugins.factories import CheckedFactory
from policysched.app.report_table import ReportTable
from policysched.errors import UsageError
from policysched.plugins.registry import DEFAULT_ORIGIN
from policysched.visible import visible

_ORDER: Final = tuple(one.encode_name for one in fields(Plugins))
_NOT_KNOWN: Final = "known after creation"
NOTHING_MEASURED: Final[Mapping[str, float]] = {}


@dataclass(frozen=True, slots=True)
class PluginRow:
    """A plugin that is registered."""

    name: str
    points: tuple[str, ...] | None
    """In the order in which a pod meets them; None where they are not known."""
    origin: str
    problem: str = ""
    """Why it cannot be enabled."""
    microseconds: float | None = None
    """What it takes in a decision, where that was measured."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; what is not known or not there is left out."""
        said = {
            "name": self.name,
            "points": self.points,
            "origin": self.origin,
            "microseconds": None if self.microseconds is None else round(self.microseconds, 1),
            "problem": self.problem or None,
        }
        return {key: value for key, value in said.items() if value is not None}


def plugin_rows(found: FoundPlugins, times: Mapping[str, float] = NOTHING_MEASURED) -> Iterator[PluginRow]:
    """List the default plugins in their order, then those that were found.

    Args:
        found: What was found.
        times: What was measured, by name. Units: microseconds.
    """
    registry = registry_with(found.registry)
    for name in registry:
        entry = registry[name]
        try:
            points = POINTS_OF[name] if entry.origin == DEFAULT_ORIGIN else _points(entry.factory)
        except UsageError as error:
            yield PluginRow(name, None, entry.origin, str(error))
        else:
            ordered = None if points is None else tuple(point for point in _ORDER if point in points)
            yield PluginRow(name, ordered, entry.origin, microseconds=times.get(name))


def plugin_table(rows: list[PluginRow]) -> ReportTable:
    """Show the rows, with what was measured of any."""
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
    """Return the points of what a factory makes.

    Raises:
        UsageError: it does not import, is no factory, or makes no plugin; or a method of the plugin is wrong.
    """
    checked: CheckedFactory = factory.checked()
    made = checked.makes()
    if made is None:
        return None
    check_plugin(checked.name, made)
    return points_of(made)
