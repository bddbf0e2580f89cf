"""What a code of the language is: its title, its sentences and a text that gets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Sentence: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Code:
    """A code: what it is about, its sentences, and a text that gets it.

    Attributes:
        title: The code in a few words.
        message: The usual sentence.
        help: What to do; empty where there is nothing to say.
        example: A text that gets this code.
        place: Where that text stands: `filter`, `appliesTo`, `score`, `cases` (one a line), `let` (`name = text`
            a line) or `policy`, for the codes that need more than one text.
        variants: Other sentences of the same code, each with its own help.
    """

    title: str
    message: str
    help: str
    example: str
    place: str = "filter"
    variants: Mapping[str, Sentence] = field(default_factory=dict)

    @property
    def sentences(self) -> Mapping[str, Sentence]:
        """All sentences by variant, the usual one under the empty name."""
        return {"": (self.message, self.help), **self.variants}
