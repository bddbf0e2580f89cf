"""What is said of a code at length: what it means, why it is so, an example that gets it and the same without it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Explanation:
    """A code at length.

    Attributes:
        meaning: What the code says, beyond its title.
        reason: Why the language is like that, and what is behind the mistake most often.
        example: Part of a policy's spec, as YAML, that gets this code and no other.
        fix: The same part without the mistake.
        nodes: The nodes that the example needs, as YAML, where it needs any.
        title: The code in a few words, for one that is none of the language's.
    """

    meaning: str
    reason: str
    example: str
    fix: str
    nodes: str = ""
    title: str = ""
