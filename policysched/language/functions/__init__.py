"""The functions of the language: signatures and type checks of calls, one module for each subject.

`language.evaluation` computes the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.functions.lists import LISTS
from policysched.language.functions.placements import OVER_PLACEMENT
from policysched.language.functions.signatures import Function
from policysched.language.functions.strings import STRINGS
from policysched.language.functions.times import TIMES
from policysched.language.functions.values import OVER_NODES, OVER_PODS, VALUES

FUNCTIONS: Final[Mapping[str, Function]] = {
    **VALUES, **STRINGS, **TIMES, **LISTS, **OVER_NODES, **OVER_PODS, **OVER_PLACEMENT,
}  # fmt: skip
