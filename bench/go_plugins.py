"""Cost of four plugins in Go and in Python: lines of code, build, start.

The Go sources are in `bench/go`: plugin, `main` and module file. Counted are lines with code, without comments,
generated files, configurations and manifests.

    python -m bench.go_plugins [--build] [--cold]

`--build` builds the Go programs with a cache of everything but the plugin. `--cold` also builds one with an empty
cache, which takes minutes. Times are processor time.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from tests.controlplane.golang import find_go

ROOT = Path(__file__).resolve().parents[1]
GO = ROOT / "bench" / "go"
FLAGS = ("-trimpath", "-ldflags=-s -w")


@dataclass(frozen=True)
class Case:
    """A plugin that is compared: its files in Go, in Python and as a policy."""

    name: str
    go: str
    plugin: str
    policy: str = ""


CASES = (
    Case("tonodename", "tonodename", "tour/01-tonodename/tonodename.py", "tour/01-tonodename/policy.yaml"),
    Case("multipoint-communicating", "multipoint", "tour/06-multipoint-communicating/multipoint.py"),
    Case(
        "sample-plugin", "sample", "tour/02-node-label-filter/sample_plugin.py", "tour/02-node-label-filter/policy.yaml"
    ),
    Case("namescore", "namescore", "tour/03-namescore/namescore.py", "tour/03-namescore/policy.yaml"),
)


def code_lines(path: Path) -> int:
    """Return the number of code lines of a file, without empty lines, comments and one-line docstrings."""
    comments = ("//", "#", '"""')
    lines = (line.strip() for line in path.read_text("utf-8").splitlines())
    return sum(bool(line) and not line.startswith(comments) for line in lines)


def module_lines() -> int:
    """Return the number of lines of go.mod that an author writes: direct requirements and replacements."""
    lines = (line.strip() for line in (GO / "go.mod").read_text("utf-8").splitlines())
    return sum(bool(line) and "// indirect" not in line for line in lines)


def rule_lines(path: Path) -> int:
    """Return the number of lines of a policy's rules, without the lines of kind and metadata."""
    _, _, spec = path.read_text("utf-8").partition("\nspec:\n")
    return len(spec.splitlines())


def lines_table() -> Table:
    """Return the table of the lines that an author writes."""
    table = Table("", "Go: plugin", "main", "go.mod", "Dockerfile", "files", "Python plugin", "policy", box=box.SIMPLE)
    shared = module_lines(), code_lines(GO / "Dockerfile")
    for one in CASES:
        plugin, main = (code_lines(GO / one.go / name) for name in ("plugin.go", "main.go"))
        policy = str(rule_lines(ROOT / "examples" / one.policy)) if one.policy else "-"
        python = code_lines(ROOT / "examples" / one.plugin)
        table.add_row(one.name, *map(str, (plugin, main, *shared, 5, python)), policy)
    return table


def built(package: str, target: Path, **variables: str) -> float:
    """Build a program, and return the processor time of the build. Units: seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", **variables}
    command = [str(find_go()), "build", *FLAGS, "-o", str(target), f"./{package}"]
    subprocess.run(command, cwd=GO, env=environment, check=True)  # noqa: S603 - our own sources
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def build_table(cases: Iterable[Case], *, cold: bool) -> Table:
    """Return the table of build times: each program is built to fill the cache, edited, and built again."""
    table = Table("", "build after an edit, CPU s", "program, MB", box=box.SIMPLE)
    with tempfile.TemporaryDirectory() as folder:
        for one in cases:
            target, source = Path(folder) / one.go, GO / one.go / "plugin.go"
            built(one.go, target)
            text = source.read_text("utf-8")
            try:
                source.write_text(f"{text}\nvar _ = {os.getpid()}\n", "utf-8")
                seconds = built(one.go, target)
            finally:
                source.write_text(text, "utf-8")
            table.add_row(one.name, f"{seconds:.1f}", f"{target.stat().st_size / 1e6:.0f}")
        if cold:
            seconds = built(CASES[0].go, Path(folder) / "cold", GOCACHE=str(Path(folder) / "cache"))
            table.add_row(f"{CASES[0].name}, empty cache", f"{seconds:.0f}", "")
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="store_true", help="build the Go programs")
    parser.add_argument("--cold", action="store_true", help="also build one with an empty cache")
    given = parser.parse_args()
    out = Console(width=120)
    out.print(lines_table())
    if given.build or given.cold:
        out.print(build_table(CASES, cold=given.cold))


if __name__ == "__main__":
    main()
