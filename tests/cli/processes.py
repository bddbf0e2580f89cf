"""Commands as processes of their own, for what only a process shows: signals, exit codes, what a terminal gets."""

from __future__ import annotations

import os
import pty
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


def on_a_terminal(*arguments: str, code: int = 0, problem: bytes | None = b"", **variables: str) -> str:
    """Run the command with a terminal of 80 columns as its stdout; give what it wrote."""
    own, its = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=its,
        stderr=subprocess.PIPE,
        env=environment(TERM="xterm", COLUMNS="80", **variables),
    )
    os.close(its)
    written = b""
    try:
        while part := os.read(own, 65536):
            written += part
    except OSError:
        pass  # Linux says so when the other end is closed
    finally:
        os.close(own)
    _, said = process.communicate(timeout=SECONDS)
    assert (process.returncode, said) == (code, said if problem is None else problem)
    return written.decode()
