"""`python -m tests.oracle.ladder VERSION`: compares kube-scheduler's decisions at two versions of Kubernetes.

The exit code is 0 after a report, 1 where the oracle of a version cannot be built, 2 after wrong arguments.
"""

from __future__ import annotations

import argparse
import re
import secrets
import sys
import time
from pathlib import Path

from tests.controlplane.golang import BuildError
from tests.controlplane.releases import DEFAULT, RELEASES
from tests.oracle.ladder.causes import Comparison
from tests.oracle.ladder.classes import compare, generated
from tests.oracle.ladder.programs import oracle_of, release_of, running, sources_of
from tests.oracle.ladder.report import markdown
from tests.oracle.ladder.sources import GATES, changed_files, changed_gates, gates


def version(text: str) -> str:
    """Return a version of Kubernetes.

    Raises:
        argparse.ArgumentTypeError: The text is none.
    """
    if not re.fullmatch(r"v1\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no version of Kubernetes such as v1.37.2 or v1.39.0-alpha.1")
    return text


def main() -> int:
    """Compare, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.ladder", description=__doc__)
    parser.add_argument("version", type=version, help="the version to compare, such as v1.39.0-alpha.1")
    parser.add_argument("--from", dest="old", type=version, default=RELEASES[DEFAULT].version, help="the known version")
    parser.add_argument("--cases", type=int, default=20_000, help="how many cases the first generator makes")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--output", type=Path, help="the report's file (default: build/ladder/VERSION.md)")
    options = parser.parse_args()
    output = options.output or Path("build/ladder") / f"{options.version}.md"
    began = time.monotonic()

    def progress(text: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began:6.0f} s  {text}\n")
        sys.stderr.flush()

    try:
        releases = [release_of(one) for one in (options.old, options.version)]
        programs = []
        for release in releases:
            progress(f"building the oracle of {release.version}")
            programs.append(oracle_of(release))
    except BuildError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    old, new = (sources_of(release) for release in releases)
    states = [
        gates((path / GATES).read_text("utf-8"), release.minor)
        for path, release in zip((old, new), releases, strict=True)
    ]
    with running(programs[0]) as ask_old, running(programs[1]) as ask_new:
        outcome = compare(Comparison(ask_old, ask_new), generated(options.seed, options.cases), progress)
    text = markdown(
        options.old, options.version, options.seed, outcome, changed_gates(*states), changed_files(old, new)
    )
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, "utf-8")
    progress(f"report: {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
