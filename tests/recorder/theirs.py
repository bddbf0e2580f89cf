"""kube-scheduler's side of a script: the Go recorder as a running program.

Knows nothing of our own side. One script is on its way at a time.

`python -m tests.recorder.theirs FILE` prints what kube-scheduler does with the script of a file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tests.controlplane.releases import chosen
from tests.oracle.build import binary

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tests.controlplane.releases import Release

PATIENCE: Final = 60.0
"""How long a script may take, which takes milliseconds. Units: seconds."""
Script: TypeAlias = dict[str, Any]
Outcome: TypeAlias = dict[str, Any]


class InvalidScriptError(ValueError):
    """The script's configuration or an object of it is refused, or it removes what is gone."""


class KubeScheduler:
    """A context manager around one process, which plays scripts one after another.

    Attributes:
        release: The Kubernetes release of kube-scheduler; by default the chosen one.
        is_orderly: Whether its goroutines run one at a time, so that a script always goes the same.
    """

    def __init__(self, release: Release | None = None, *, is_orderly: bool = False) -> None:
        self.release = release or chosen()
        self.is_orderly = is_orderly

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [binary("recorder", self.release)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **({"GOMAXPROCS": "1"} if self.is_orderly else {})},
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def play(self, script: Script) -> Outcome:
        """Play a script.

        Raises:
            InvalidScriptError: that is not possible.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the recorder was started without pipes")
        self._process.stdin.write(json.dumps(script) + "\n")
        self._process.stdin.flush()
        alarm = Timer(PATIENCE, self._process.kill)
        alarm.start()
        line = self._process.stdout.readline()
        alarm.cancel()
        if not line:
            raise RuntimeError(f"{script['id']}: the recorder ended with exit code {self._process.wait()}")
        outcome: Outcome = json.loads(line)
        if outcome.get("error"):
            raise InvalidScriptError(outcome["error"])
        return outcome


def main() -> None:
    """Print the outcome of the script in the file that the command line names."""
    with KubeScheduler() as kube:
        outcome = kube.play(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    print(json.dumps(outcome, indent=1))  # noqa: T201 - a command's output


if __name__ == "__main__":
    main()
