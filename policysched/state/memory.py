"""What is shared by several who hold it, counted in equal parts: so all parts together are what it takes.

Knows nothing of what is held. Something that came to be held by fewer is counted too low until it is counted again.
"""

from __future__ import annotations

import sys
from typing import Final

_OWN_REFERENCES: Final = 2
"""References to an argument that nobody holds: the function's own, and that of the call that counts them."""


def part_of(shared: object) -> int:
    """Give one holder's part of `nbytes`, the memory of something shared; 0 where it does not say. Units: bytes."""
    holders = max(1, sys.getrefcount(shared) - _OWN_REFERENCES)
    return int(getattr(shared, "nbytes", 0)) // holders
