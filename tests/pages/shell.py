"""One shell a page: its commands see the variables, files and background processes of those before them.

It knows no pages. Whatever it started ends with it.
"""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, Self

DEADLINE: Final = 120.0
"""How long one command may take. Units: seconds."""


class ShellError(RuntimeError):
    """A command did not end in time, or the shell ended."""


class Shell:
    """A bash whose output comes back command by command, stdout and stderr in one."""

    def __init__(self, folder: Path, programs: Path | None, deadline: float = DEADLINE) -> None:
        self._folder = folder
        self._deadline = deadline
        path = [str(one) for one in (Path(sys.prefix) / "bin", programs) if one is not None]
        self._environment = os.environ | {
            "PATH": os.pathsep.join([*path, os.environ.get("PATH", "")]),
            "HOME": str(folder),
            "NO_PROXY": "*",
            "no_proxy": "*",
        }
        for name in ("KUBECONFIG", "PYTEST_ADDOPTS"):
            self._environment.pop(name, None)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            env=self._environment,
            start_new_session=True,
        )
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            self._process.communicate(timeout=10)
        self._selector.close()

    def run(self, command: str) -> tuple[int, str]:
        """Run a command; give its exit code and what it printed.

        Raises:
            ShellError: it took too long, or ended the shell.
        """
        mark = f"--{secrets.token_hex(8)}--"
        self._type(f"{{ {command}\n}} </dev/null; echo {mark}$?\n")
        printed = self._until(mark)
        output, _, code = printed.rpartition(mark)
        return int(code), output

    def start(self, commands: str) -> int:
        """Run commands whose output, and that of what they leave in the background, goes to a log; give the code."""
        return self.run(f"{{ {commands}\n}} >>session.log 2>&1")[0]

    def _type(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()

    def _until(self, mark: str) -> str:
        end, printed = time.monotonic() + self._deadline, b""
        assert self._process.stdout is not None
        while True:
            if not self._selector.select(max(end - time.monotonic(), 0)):
                raise ShellError(f"no end after {self._deadline:.0f} s:\n{printed.decode('utf-8', 'replace')}")
            some = os.read(self._process.stdout.fileno(), 65536)
            if not some:
                raise ShellError(f"the shell ended:\n{printed.decode('utf-8', 'replace')}")
            printed += some
            if mark.encode() in printed and printed.endswith(b"\n"):
                return printed.decode("utf-8", "replace")
