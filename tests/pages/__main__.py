"""Writes or checks the listings of pages: `python -m tests.pages [--check | --measure] [PAGE…]`."""

from __future__ import annotations

import argparse
import sys
from difflib import unified_diff
from pathlib import Path

from tests.pages.listings import ListingError
from tests.pages.making import PAGES, made
from tools.documents.markdown import ROOT, shown


def main() -> int:
    """Write every page, or the pages that are named; with --check, print the lines that differ and return 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.pages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, print the listings that differ")
    parser.add_argument("--measure", action="store_true", help="run the measured listings only")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="README.md, docs/write/dry-run.md, …; default: all")
    given = parser.parse_args()
    failed = False
    for path in [ROOT / Path(name) for name in given.pages] or PAGES:
        try:
            failed |= _refresh(path, check=given.check, measure=given.measure)
        except ListingError as error:
            print(f"{shown(path)}: {error}", flush=True)  # noqa: T201
            failed = True
    return 1 if failed else 0


def _refresh(path: Path, *, check: bool, measure: bool) -> bool:
    """Write or check a page; return whether a checked page differs."""
    before = path.read_text("utf-8")
    after = made(path, measure=measure)
    if after == before:
        return False
    if not check:
        path.write_text(after, "utf-8")
        print(f"{shown(path)}: written", flush=True)  # noqa: T201
        return False
    print(f"{shown(path)}:{first_difference(before, after)}: the listing differs from what its command prints")  # noqa: T201
    print(*unified_diff(before.splitlines(), after.splitlines(), "page", "command", lineterm=""), sep="\n", flush=True)  # noqa: T201
    return True


def first_difference(before: str, after: str) -> int:
    """Return the number of the first line that differs, from 1."""
    lines = zip(before.splitlines(), after.splitlines(), strict=False)
    return next((number for number, (one, other) in enumerate(lines, 1) if one != other), before.count("\n"))


if __name__ == "__main__":
    sys.exit(main())
