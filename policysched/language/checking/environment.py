"""What a text may name, and the words that nobody may name anything.

The phases are the places of a policy: they decide which inputs can be read, not what an expression means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from policysched.language.functions.table import FUNCTIONS
from policysched.language.ir.fields import ROOTS
from policysched.language.ir.graph import Typed
from policysched.language.ir.types import Unit

Phase: TypeAlias = Literal["pod", "filter", "score", "let"]
NAME = re.compile(r"[a-z_][a-z0-9_]*")
_WORDS = frozenset({"and", "or", "not", "in", "by", "true", "false", "else", "missing"})


@dataclass(frozen=True, slots=True)
class Environment:
    """What stands around a text.

    Attributes:
        phase: `pod` for `appliesTo` and `when`, else the kind of text.
        lets: The names that are defined, in order; None where the definition has an error of its own.
        later: Names that are defined further down.
        metrics: The declared metrics and their units.
        normalized: Whether the score is normalised after its value, so that constants may have any size.
    """

    phase: Phase = "filter"
    lets: Mapping[str, Typed | None] = field(default_factory=dict)
    later: frozenset[str] = frozenset()
    metrics: Mapping[str, Unit] = field(default_factory=dict)
    normalized: bool = False
    used: set[str] = field(default_factory=set, compare=False)
    """The `let` names that texts used, shared by all environments that are made of this one."""


def reserved_names() -> frozenset[str]:
    """Return the names that no `let` and no metric can have."""
    return _WORDS | ROOTS | {name for name in FUNCTIONS if NAME.fullmatch(name)}
