"""What can wait is done once the pods that waited at the start are bound and their events written: pods go first."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.app.demo.sandbox_setup import new_sandbox
from policysched.app.running import process as running
from policysched.app.running.process import Process
from policysched.app.running.run_options import RunOptions
from policysched.app.serving import port
from policysched.app.serving.health import Health
from policysched.app.serving.options import ServingOptions
from policysched.app.serving.served import Served
from policysched.app.serving.thread import secure_port, wait_until_idle
from policysched.errors import ConnectionProblemError
from policysched.kube.connection import Connection
from policysched.metric_sources.no_source import NoSource
from policysched.model.release import DEFAULT
from policysched.sandbox import sandbox_nodes
from tests.app.serving.ports import free_port
from tests.e2e.objects import NAME, pod

PODS = 80


async def test_idle_process_is_waited_for_a_limited_time() -> None:
    answers = iter((True, True, False))
    await wait_until_idle(lambda: next(answers), 60)
    assert next(answers, None) is None
    async with asyncio.timeout(60):
        await wait_until_idle(lambda: True, 0.05)


async def test_grammar_is_loaded_after_the_pods_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = new_sandbox(kubelet_seconds=None)
    sandbox.load([*sandbox_nodes(3), *(pod(f"p{number}") for number in range(PODS))])
    await sandbox.start()
    connection = Connection(sandbox.url, SystemClock())
    process = Process(RunOptions(scheduler_names=(NAME,)), connection, NoSource(), CollectorRegistry())
    loaded, done = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    def load() -> None:
        done.append((process.events.counts.requests, process.is_busy()))
        loop.call_soon_threadsafe(loaded.set)

    monkeypatch.setattr(running, "GRAMMAR_AFTER", 0.0)
    monkeypatch.setattr(running, "load_grammar", load)
    assert process.is_busy(), "nothing is listed yet"
    task = asyncio.create_task(process.run())
    try:
        async with asyncio.timeout(60):
            await loaded.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await connection.close()
        await sandbox.stop()
    assert done == [(PODS, False)]


async def test_port_begins_after_the_pods_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, asked, begun = True, asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def is_busy() -> bool:
        loop.call_soon_threadsafe(asked.set)
        return busy

    async def begin(*_: Any) -> Any:
        loop.call_soon_threadsafe(begun.set)
        raise ConnectionProblemError("that is all")

    monkeypatch.setattr(port, "_reviewers", begin)
    options = ServingOptions(port=free_port(), bind_address="127.0.0.1")
    rest: Any = SimpleNamespace()
    served = Served(Health(), CollectorRegistry(), {}, rest, lambda: DEFAULT, lambda: (), rest, is_busy)
    async with asyncio.timeout(60), secure_port(options, served, rest):
        for _ in range(3):
            asked.clear()
            await asked.wait()
        assert not begun.is_set()
        busy = False
        await begun.wait()
