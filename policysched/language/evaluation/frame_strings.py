"""The strings of one frame: those that the cluster has codes for, and those that only this frame knows.

What rules make of strings (`concat`), and what they read of pods, is different for every pod. It gets codes that go
with the frame, so that the interner of the process grows with its nodes alone. A code means the same string as long as
the frame lives and nothing to any other frame.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from policysched.language.evaluation.frames import Codes, Mask, Strings

FIRST_OWN: Final = 1 << 30
"""The first code of strings that only one frame knows: above those of any interner."""
_LASTING: Final = 1 << 40


class FrameStrings:
    """An interner's codes, which are only read, and those of a frame's own strings."""

    __slots__ = ("_codes", "_texts", "base")

    def __init__(self, base: Strings) -> None:
        self.base = base
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []

    def code(self, text: str) -> int:
        """Return the code of a text, one of this frame's own if the interner has none."""
        code = self._codes.get(text)
        if code is None:
            code = self.base.find(text)
            if code < 0:
                code = self._codes[text] = FIRST_OWN + len(self._texts)
                self._texts.append(text)
        return code

    def find(self, text: str) -> int:
        """Return the code of a text, -1 if it has none: then no column of this frame holds it."""
        code = self._codes.get(text)
        return self.base.find(text) if code is None else code

    def text(self, code: int) -> str:
        """Return the text of a code."""
        return self._texts[code - FIRST_OWN] if code >= FIRST_OWN else self.base.text(code)

    def own(self, codes: Codes) -> Mask | None:
        """Return where a column holds strings of this frame's own, None where it holds none. Shapes: (R,) -> (R,)."""
        if not self._texts:
            return None
        found: Mask = codes >= FIRST_OWN
        return found if found.any() else None

    def read(self, codes: Codes) -> Codes:
        """Return a column of the interner's codes with one code for one string.

        A string that the interner learned after this frame made it keeps the frame's code. Shapes: (R,) -> (R,).
        """
        if not self._texts:
            return codes
        known = sorted((code, own) for text, own in self._codes.items() if (code := self.base.find(text)) >= 0)
        if not known:
            return codes
        late, own = np.array(known, np.int32).T
        places = np.minimum(np.searchsorted(late, codes), len(late) - 1)
        return np.where(late[places] == codes, own[places], codes)

    def lasting(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Return numbers that differ where strings do, coincidences apart, on this frame and others. Shapes: (R,)."""
        numbers = codes.astype(np.int64)
        own = self.own(codes)
        if own is not None:
            hashes = np.array([hash(text) | _LASTING for text in self._texts], np.int64)
            numbers[own] = hashes[codes[own] - FIRST_OWN]
        return numbers
