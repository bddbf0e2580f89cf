"""The scheduler under test: in this process, which is fast, or as a process of its own, which is the real thing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

from policysched.app.configuration.election import NO_ELECTION
from policysched.app.plugins.discovery import find_plugins
from policysched.app.running.metric_options import NO_METRICS, MetricOptions
from policysched.app.running.run import run_scheduler
from policysched.app.running.run_options import RunOptions
from policysched.klog import body
from tests.e2e.objects import NAME
from tests.e2e.waiting import DEADLINE, until_true

COMMAND = Path(sys.prefix) / "bin" / "policysched"


SEVERITIES = {"I": "INFO", "W": "WARNING", "E": "ERROR"}


class Lines(logging.Handler):
    """What a scheduler logged, one text a line: `LEVEL text`."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {body(record)}")

    def saying(self, text: str) -> list[str]:
        """Give the lines that contain a text."""
        return [line for line in self.lines if text in line]

    async def started(self) -> None:
        """Wait until it begins to try pods."""
        await until_true(lambda: any(line.endswith(" scheduling") for line in self.lines))

    async def said(self, text: str, times: int = 1) -> list[str]:
        """Wait for lines that contain a text, as what they tell of may be seen elsewhere before; give them."""
        try:
            await until_true(lambda: len(self.saying(text)) >= times)
        except AssertionError as error:
            raise AssertionError(f"fewer than {times} lines say {text!r}: {self.lines}") from error
        return self.saying(text)


class InProcess(Lines):
    """A scheduler that runs as a task."""

    def __init__(self, options: RunOptions) -> None:
        super().__init__()
        self.told_to_stop = asyncio.Event()
        self.task = asyncio.create_task(run_scheduler(options, self.told_to_stop))

    async def stop(self) -> None:
        """End it as SIGTERM would."""
        self.told_to_stop.set()
        await asyncio.wait_for(self.task, DEADLINE)


@contextlib.asynccontextmanager
async def in_process(
    kubeconfig: Path | None,
    *names: str,
    wait: bool = True,
    metrics: MetricOptions = NO_METRICS,
    config: Path | None = None,
    plugins: Iterable[str] = (),
) -> AsyncIterator[InProcess]:
    """Run a scheduler in this process; it must not have ended by itself.

    Args:
        kubeconfig: How it reaches the server; None where a configuration says so.
        names: Whose pods it schedules.
        wait: Whether it has to begin to try pods.
        metrics: Where it gets metrics from.
        config: Its configuration.
        plugins: What `--plugin` is given.
    """
    log = logging.getLogger("policysched")
    before = log.level
    log.setLevel(logging.DEBUG)
    options = RunOptions(
        kubeconfig=kubeconfig,
        scheduler_names=names or (NAME,),
        config=config,
        plugins=find_plugins(plugins).registry,
        metrics=metrics,
        leader_election=NO_ELECTION,
    )
    running = InProcess(options)
    log.addHandler(running)
    try:
        if wait:
            await running.started()
        yield running
        assert running.told_to_stop.is_set() or not running.task.done(), running.lines
    finally:
        await running.stop()
        log.removeHandler(running)
        log.setLevel(before)


class Spawned(Lines):
    """A scheduler that runs as a process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__()
        self.process = process
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            text = line.decode().rstrip()
            said = SEVERITIES.get(text[:1], "") if text[1:5].isdecimal() else ""
            self.lines.append(f"{said} {text}".lstrip(" "))

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and give the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await self.exit_code()

    async def exit_code(self) -> int:
        """Wait for the end and give the exit code."""
        code = await asyncio.wait_for(self.process.wait(), DEADLINE)
        await self._reader
        return code


@contextlib.asynccontextmanager
async def spawned(
    *arguments: str, environment: Mapping[str, str] | None = None, wait: bool = True, command: str = "run"
) -> AsyncIterator[Spawned]:
    """Run a command of policysched as a process; if a test leaves it running, SIGTERM must end it with exit code 0."""
    # All of a machine would want the same port.
    unserved = [] if any(one.startswith("--secure-port") for one in arguments) else ["--secure-port=0"]
    process = await asyncio.create_subprocess_exec(
        str(COMMAND),
        command,
        *unserved,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | (environment or {}),
    )
    running = Spawned(process)
    try:
        if wait:
            await running.started()
        yield running
        if process.returncode is None:
            assert await running.end() == 0, running.lines
    finally:
        if process.returncode is None:
            await running.end(signal.SIGKILL)
    assert not running.saying("Traceback"), running.lines
