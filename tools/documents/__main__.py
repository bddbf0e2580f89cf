"""Checks all documents and builds the site: `python -m tools.documents [--site DIR] [--publish DIR --version X.Y]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.documents.checks import all_problems, pages, words_of
from tools.documents.site import BUILD, SiteError, build, publish
from tools.reference import GENERATED


def main() -> int:
    """Check all documents and build the site; return 0 if both succeed, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.documents", description="Check documents and build the site."
    )
    parser.add_argument("--site", type=Path, default=BUILD / "site", metavar="DIR", help="folder of the site")
    parser.add_argument(
        "--publish", type=Path, metavar="DIR", help="folder of all versions of the site; builds one of them"
    )
    parser.add_argument("--version", default="", help="version to publish, such as 0.1")
    given = parser.parse_args()
    problems = [*map(str, all_problems())]
    print(*problems, sep="\n", end="\n" if problems else "")
    try:
        if given.publish:
            publish(given.publish, given.version)
        else:
            build(given.site)
    except SiteError as error:
        problems.append(str(error))
        print(error)
    counted = pages()
    written = sum(words_of(page) for page in counted if page not in GENERATED)
    print(f"{len(counted)} pages, {written:,} words written and {sum(map(words_of, counted)) - written:,} generated")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
