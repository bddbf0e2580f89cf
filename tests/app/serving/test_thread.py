"""The thread of the secure port: it serves again after whatever ends its work."""

from __future__ import annotations

import asyncio
import threading

import pytest

from policysched.app.serving import thread
from policysched.app.serving.thread import in_thread
from policysched.errors import ConnectionProblemError


async def test_port_is_served_again_after_a_failure_that_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(thread, "AGAIN", 0.01)
    tried, served, ended = 0, threading.Event(), threading.Event()

    async def work() -> None:
        nonlocal tried
        tried += 1
        if tried <= 3:
            raise ConnectionProblemError("no credentials yet")
        served.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    async with in_thread("port", work):
        assert await asyncio.to_thread(served.wait, 60)
    assert ended.is_set() and tried == 4
    assert [line for line in caplog.messages if "the secure port" in line] == [
        "serving the secure port failed; retrying every 0 s"
    ]
