"""Builds the files of a release: `python -m tools.release DIR [--tag vX.Y.Z]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.release.building import build
from tools.release.checking import ReleaseError, check_versions
from tools.release.tracked import ROOT


def main() -> int:
    """Build the files and print their names and sizes; return 1 if the versions of the tree disagree."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description="Build the files of a release.")
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="where the files are written; must be empty or missing"
    )
    parser.add_argument(
        "--tag", default="", help="tag of the release: must be the version, with a date in the changelog"
    )
    given = parser.parse_args()
    try:
        version = check_versions(ROOT, given.tag)
        files = build(given.folder, version)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(*(f"{path.stat().st_size:>10,}  {path.name}" for path in files), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
