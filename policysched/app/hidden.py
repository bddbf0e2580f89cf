"""Characters in a policy's texts that nobody sees: they make a text read as another than is compared or shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from policysched.language import Diagnostic, Span, diagnose
from policysched.visible import is_hidden, visible

_LAYOUT: Final = frozenset("\n\t\r")
CODE: Final = "W0706"


def hidden_characters(policy: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Warn of the first such character of each text of a policy's spec."""
    for field, text in _texts(policy.get("spec"), "spec"):
        if visible(text, None) == text:
            continue
        place = next((place for place, one in enumerate(text) if one not in _LAYOUT and is_hidden(one)), None)
        if place is not None:
            yield replace(diagnose(CODE, text, Span(place, place + 1), character=_name(text[place])), field=field)


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield path, value
        case dict():
            for key, item in value.items():
                yield from _texts(item, f"{path}.{key}")
        case list():
            for index, item in enumerate(value):
                yield from _texts(item, f"{path}[{index}]")


def _name(character: str) -> str:
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X}" + (f" ({name.lower()})" if name else "")
