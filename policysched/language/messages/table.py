"""The table of messages: every code with its sentences, explanation and examples, read from `messages.toml`."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """Everything that is said about a code.

    Attributes:
        title: The code in a few words.
        meaning: What the code says, beyond its title.
        reason: Why the language is like that, and what is behind the mistake most often.
        example: Part of a policy's spec, as YAML, that gets this code and no other.
        fix: The same part without the mistake.
        nodes: The nodes that the example needs, as YAML, where it needs any.
        message: The usual sentence; empty for a code that the language itself never gives.
        help: What to do; empty where there is nothing to say.
        text: A text that gets this code.
        place: Where that text stands: `filter`, `appliesTo`, `score`, `cases` (one a line), `let` (`name = text`
            a line) or `policy`, for the codes that need more than one text.
        variants: Other sentences of the same code, each with its own help.
    """

    title: str
    meaning: str
    reason: str
    example: str
    fix: str
    nodes: str = ""
    message: str = ""
    help: str = ""
    text: str = ""
    place: str = "filter"
    variants: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def sentences(self) -> Mapping[str, tuple[str, str]]:
        """All sentences with their help by variant, the usual one under the empty name."""
        return {"": (self.message, self.help), **self.variants}


@functools.cache
def message_table() -> Mapping[str, Message]:
    """Return all messages by code, in the order of the codes."""
    import tomllib  # noqa: PLC0415 texts without mistakes do not wait for it

    text = importlib.resources.files(__package__).joinpath("messages.toml").read_text("utf-8")
    return {code: _message(entry) for code, entry in tomllib.loads(text).items()}


def _message(entry: dict[str, Any]) -> Message:
    repeated = {name: _repeated(**parts) for name, parts in entry.pop("repeat", {}).items()}
    for key in ("text", "example"):
        for name, text in repeated.items():
            entry[key] = entry.get(key, "").replace(f"<{name}>", text)
    for key in ("meaning", "reason"):
        entry[key] = " ".join(entry[key].split())
    variants = {name: (message, hint) for name, (message, hint) in entry.pop("variants", {}).items()}
    return Message(**entry, variants=variants)


def _repeated(of: str, to: int, between: str = "", **start: int) -> str:
    return between.join(of.replace("{n}", str(number)) for number in range(start.get("from", 0), to))
