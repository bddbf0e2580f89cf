"""How long strings can get: bounds that are known when a text is compiled, and what is held to them when it runs.

Strings that Kubernetes bounds (names, values of labels) have its bounds. What it does not bound (annotations, owners)
may be of any length; it can be compared and looked through, but what takes more than time linear in it, or makes
another string of it, takes at most `MAX_TEXT` characters: the result is missing for longer ones, and its type says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

MAX_TEXT: Final = 4096
"""How long a string may be that `concat` makes, or that `glob`, `number` and `version` read. Units: characters."""
MAX_PARTS: Final = 1024
"""Into how many parts `split` divides a string."""
ANY_LENGTH: Final = 1 << 30
_LABEL: Final = 63
_NAME: Final = 253


class Length(NamedTuple):
    """The least and the most characters of a string, where it is there."""

    least: int = 0
    most: int = 0


_FIELDS: Final[Mapping[str, Length]] = {
    **dict.fromkeys(("labels", "namespace_labels"), Length(0, _LABEL)),
    **dict.fromkeys(("arch", "os", "zone", "region", "instance_type"), Length(0, _LABEL)),
    "namespace": Length(1, _LABEL),
    **dict.fromkeys(("name", "service_account", "priority_class"), Length(1, _NAME)),
    "qos": Length(len("Burstable"), len("BestEffort")),
}


def of_input(field: str) -> Length:
    """Return the bounds of an input by the first name of its path."""
    return _FIELDS.get(field, Length(0, ANY_LENGTH))


def of_constant(text: str) -> Length:
    """Return the bounds of a constant."""
    return Length(len(text), len(text))


def joined(parts: Sequence[Length]) -> Length:
    """Return the bounds of strings put together: of one that would be too long nothing is there."""
    return Length(sum(part.least for part in parts), min(sum(part.most for part in parts), MAX_TEXT))


def either(parts: Sequence[Length]) -> Length:
    """Return the bounds of what is one of several strings."""
    return Length(min(part.least for part in parts), max(part.most for part in parts))
