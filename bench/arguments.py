"""The argument parser that benchmarks share."""

from __future__ import annotations

import argparse


def make_parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the number of nodes as its first argument, for a benchmark with its docstring as help."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=5000, help="number of nodes")
    return parser
