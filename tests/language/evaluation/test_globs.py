from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from policysched.language.evaluation.string_kernels import matches

LETTERS = st.text("ab-é\U0001f600", max_size=12)
PATTERNS = st.text("ab-é\U0001f600?*", max_size=12)
PADDING = st.sampled_from(["", "ab" * 150, "-" * 300, "é" * 257])
"""Texts of more than 256 characters are looked through in another way."""


@given(LETTERS, PADDING, LETTERS, PATTERNS)
@example("", "", "", "")
@example("a", "", "b", "**?")
@example("", "ab" * 150, "", "*a?a?b*")
@example("a", "", "", "a*a")
def test_globs_match_as_the_regular_expressions_that_say_the_same(
    before: str, padding: str, after: str, pattern: str
) -> None:
    text = before + padding + after
    meant = "".join({"*": ".*", "?": "."}.get(one, re.escape(one)) for one in re.sub(r"\*+", "*", pattern))
    assert matches(text, pattern) is (re.fullmatch(meant, text, re.DOTALL) is not None)
