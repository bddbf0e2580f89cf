"""Commands as processes of their own, for what only a process shows: signals, exit codes, what a terminal gets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

COMMAND = (sys.executable, "-c", "from policysched.cli import main; main()")
SECONDS = 60


def environment(**more: str) -> dict[str, str]:
    """The variables of a process: no kubeconfig, no colours from outside."""
    without = {"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "NO_COLOR", "FORCE_COLOR", "COLUMNS"}
    return {name: value for name, value in os.environ.items() if name not in without} | more


@contextmanager
def started(*arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Start the command; it is gone afterwards whatever happened."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)
