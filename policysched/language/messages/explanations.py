"""Every code at length: the data of `policysched explain` and of docs/errors.md.

One entry a code, in the order of the codes. It has no words of its own: they stand in the modules that it joins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.messages.explanation import Explanation
from policysched.language.messages.explanations_names import NAME_EXPLANATIONS
from policysched.language.messages.explanations_rules import RULE_EXPLANATIONS
from policysched.language.messages.explanations_texts import TEXT_EXPLANATIONS
from policysched.language.messages.explanations_types import TYPE_EXPLANATIONS
from policysched.language.messages.explanations_warnings import WARNING_EXPLANATIONS

__all__ = ["EXPLANATIONS", "Explanation"]

EXPLANATIONS: Final[Mapping[str, Explanation]] = {
    **TEXT_EXPLANATIONS,
    **NAME_EXPLANATIONS,
    **TYPE_EXPLANATIONS,
    **RULE_EXPLANATIONS,
    **WARNING_EXPLANATIONS,
}
