"""The functions of the language: signatures, and for each the type checking of its calls.

In comes a call as a syntax tree, out comes its typed graph or a diagnostic. One module a subject; what functions
compute is in `language.evaluation`, once over columns and once for plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.functions.signatures import Function
from policysched.language.functions.strings import STRINGS
from policysched.language.functions.times import TIMES
from policysched.language.functions.values import OVER_NODES, OVER_PODS, VALUES

FUNCTIONS: Final[Mapping[str, Function]] = {**VALUES, **STRINGS, **TIMES, **OVER_NODES, **OVER_PODS}
