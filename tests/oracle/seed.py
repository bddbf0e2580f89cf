"""The seed of random cases: one for each state of the package, so that a failure comes again on the next run.

`POLICYSCHED_SEED` takes its place. `python -m tests.oracle.survey` draws one by chance, for long runs.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[2] / "policysched"


def seed() -> int:
    """Return the seed that is asked for, else one made of the package's modules."""
    given = os.environ.get("POLICYSCHED_SEED")
    if given:
        return int(given)
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:4])
