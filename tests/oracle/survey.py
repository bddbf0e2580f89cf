"""A long run over random cases, with one table of how often they bite.

Knows no tests: `test_decisions` makes the same comparison in parts that run beside each other. What differs
is named by its case's id, which `generate` makes again from the seed.
"""

from __future__ import annotations

import argparse
import secrets
import sys

from .biting import Survey
from .compare import differences
from .generate import RELATED, singles
from .judge import ours
from .oracle import Oracle

EVERY = 1000
"""After how many cases the run says how far it is."""


def main() -> None:
    """Compare both sides on many cases and print the counts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--related", type=float, default=RELATED, help="share of cases whose pods look at each other")
    options = parser.parse_args()
    survey, failing = Survey(), []
    with Oracle() as oracle:
        for case in singles(options.seed, range(options.count), related=options.related):
            theirs = oracle.decide(case)
            survey.add(case, theirs)
            if differences(ours(case, oracle.minor), theirs):
                failing.append(case["id"])
            if survey.total % EVERY == 0:
                told = f"seed {options.seed}: {len(failing)} differences in {survey.total}"
                print(told, file=sys.stderr)  # noqa: T201 - a command's output
    print(f"seed {options.seed}: {len(failing)} differences {failing[:10]}")  # noqa: T201 - as above
    print(survey.text())  # noqa: T201 - as above


if __name__ == "__main__":
    main()
