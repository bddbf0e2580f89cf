"""Programs that run beside the tests: started, awaited and stopped one by one, by their process ids.

It knows none of them. Ports come from below the range that the system gives to outgoing connections: nobody else takes
such a port while its server is down for a moment.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

DEADLINE: Final = 60.0
"""How long a program may take to start or to end. Units: seconds."""
_POLL: Final = 0.03
_PORTS: Final = range(12_000, 32_000)
_TOLD: Final = 25
"""How much of a log an error shows. Units: lines."""
_taken: set[int] = set()


class ProgramError(RuntimeError):
    """A program did not start, or ended by itself; the text says so and shows the end of its log."""


def free_port() -> int:
    """Find a loopback port that nobody listens on, another one every time."""
    chance = random.SystemRandom()
    while True:
        port = chance.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _taken:
                _taken.add(port)
                return port


class Warden:
    """Ends the programs and removes their folder where this process dies before it can."""

    def __init__(self, folder: Path) -> None:
        script = Path(__file__).with_name("warden.py")
        self._process = subprocess.Popen(
            [sys.executable, "-S", str(script), str(folder)], stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def tell(self, word: str, number: int = 0) -> None:
        """Say that a process began (`+`) or ended (`-`), or that all is in order (`.`)."""
        if self._process.stdin is not None:
            self._process.stdin.write(f"{word} {number}\n")
            self._process.stdin.flush()

    def dismiss(self) -> None:
        """All is in order: nothing remains to be done."""
        self.tell(".")
        self._process.communicate(timeout=DEADLINE)


class Program:
    """One program with its arguments and its log; it can be started again after it ended."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path, warden: Warden) -> None:
        self.name = name
        self.log = log
        self.environment: dict[str, str] = {"NO_PROXY": "*", "no_proxy": "*"}
        self._command = [str(part) for part in command]
        self._warden = warden
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id, -1 where there is no process."""
        return self._process.pid if self._process is not None else -1

    def start(self) -> None:
        """Start the process, in a session of its own: the terminal's Ctrl-C is for the tests."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=Path(__file__).resolve().parents[2],
                env=os.environ | self.environment,
            )
        self._warden.tell("+", self._process.pid)

    def wait(self, ready: Callable[[], bool], seconds: float = DEADLINE) -> None:
        """Wait until something holds that this program is to bring about.

        Raises:
            ProgramError: the program ended, or it takes too long.
        """
        end = time.monotonic() + seconds
        while not ready():
            if not self.running:
                code = self._process.returncode if self._process else None
                raise ProgramError(f"{self.name} ended with code {code}:\n{self.told()}")
            if time.monotonic() > end:
                raise ProgramError(f"{self.name} is not ready after {seconds:.0f} s:\n{self.told()}")
            time.sleep(_POLL)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the process with a signal, with SIGKILL where that does not help, and wait until it is gone."""
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._warden.tell("-", self._process.pid)
        self._process = None

    def told(self) -> str:
        """Give the end of the log."""
        lines = self.log.read_text("utf-8", "replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-_TOLD:])
