"""Writes the pages anew: `python -m tests.pages [--measure] [PAGE…]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.meta.markdown import ROOT, shown
from tests.pages.making import PAGES, made


def main() -> None:
    """Write every page, or those that are named, and say which ones changed."""
    parser = argparse.ArgumentParser(prog="python -m tests.pages", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="run what is measured, in place of all else")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="README.md, docs/write/dry-run.md, …; absent, all")
    given = parser.parse_args()
    for path in [ROOT / Path(name) for name in given.pages] or PAGES:
        before = path.read_text("utf-8")
        after = made(path, measure=given.measure)
        if after != before:
            path.write_text(after, "utf-8")
        print(f"{shown(path)}: {'as it was' if after == before else 'written anew'}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
