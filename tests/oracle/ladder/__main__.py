"""`python -m tests.oracle.ladder VERSION`: compares kube-scheduler's decisions at two versions of Kubernetes.

`newest` instead of a version compares the known versions with all newer ones. The exit code is 0 after the reports, 1
where the oracle of a version cannot be built, 2 after wrong arguments.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from pathlib import Path
from typing import Final

from tests.controlplane.golang import BuildError
from tests.controlplane.releases import DEFAULT, RELEASES
from tests.oracle.ladder.causes import Comparison
from tests.oracle.ladder.classes import compare, generated
from tests.oracle.ladder.programs import VERSION, newest_steps, oracle_of, release_of, running, sources_of
from tests.oracle.ladder.report import markdown, summarized
from tests.oracle.ladder.sources import GATES, changed_files, changed_gates, gates, gates_read
from tests.oracle.ladder.summary import OUTPUT, RESULTS, store

NEWEST: Final = "newest"
BEGAN: Final = time.monotonic()


def version(text: str) -> str:
    """Return a version of Kubernetes, or `newest`.

    Raises:
        argparse.ArgumentTypeError: The text is neither.
    """
    if text != NEWEST and not VERSION.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no version of Kubernetes such as v1.37.2 or v1.39.0-alpha.1, and not {NEWEST!r}"
        )
    return text


def main() -> int:
    """Compare, and write the reports."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.ladder", description=__doc__)
    parser.add_argument("version", type=version, help=f"the version to compare, such as v1.39.0-alpha.1, or {NEWEST}")
    parser.add_argument("--from", dest="old", type=version, default=RELEASES[DEFAULT].version, help="the known version")
    parser.add_argument("--cases", type=int, default=20_000, help="how many cases the first generator makes")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the folder of the reports")
    parser.add_argument(
        "--store", action="store_true", help=f"also store the result in {RESULTS.name}/ for the documents"
    )
    options = parser.parse_args()
    try:
        steps = newest_steps() if options.version == NEWEST else [(options.old, options.version)]
        progress(", ".join(f"{old} to {new}" for old, new in steps) or "no version is newer than the known ones")
        for old, new in steps:
            step(old, new, options)
    except BuildError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def step(old: str, new: str, options: argparse.Namespace) -> None:
    """Compare two versions, and write the report.

    Raises:
        BuildError: The oracle of a version cannot be built.
    """
    releases = [release_of(one) for one in (old, new)]
    programs = []
    for release in releases:
        progress(f"building the oracle of {release.version}")
        programs.append(oracle_of(release))
    from_sources, to_sources = (sources_of(release) for release in releases)
    before, after = (
        gates((path / GATES).read_text("utf-8"), release.minor)
        for path, release in zip((from_sources, to_sources), releases, strict=True)
    )
    read = gates_read(from_sources, to_sources)
    with running(programs[0]) as ask_old, running(programs[1]) as ask_new:
        outcome = compare(Comparison(ask_old, ask_new), generated(options.seed, options.cases), progress)
    changed = [one for one in changed_gates(before, after) if one[0] in read]
    summary = summarized((old, new), options.seed, outcome, changed, changed_files(from_sources, to_sources))
    if options.store:
        store(summary)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"{new}.md"
    path.write_text(markdown(summary, outcome.classes), "utf-8")
    progress(f"report: {path}")


def progress(text: str) -> None:
    """Write a line with the seconds since the start."""
    sys.stderr.write(f"{time.monotonic() - BEGAN:6.0f} s  {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
