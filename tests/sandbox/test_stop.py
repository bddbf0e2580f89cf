"""The sandbox's end while clients still open connections."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import warnings
from datetime import UTC, datetime
from random import Random

from policysched.sandbox import Sandbox

ROUNDS = 20


async def test_no_socket_stays_open_that_was_accepted_as_the_server_stopped() -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for seed in range(ROUNDS):
            await _stop_among_connections(Random(seed))
        gc.collect()
    assert [str(one.message) for one in warned] == []


async def _stop_among_connections(random: Random) -> None:
    sandbox = Sandbox(lambda: datetime.now(UTC), random)
    await sandbox.start()
    address = ("127.0.0.1", int(sandbox.url.rsplit(":", 1)[1]))
    ended = threading.Event()

    def connect() -> None:
        while not ended.is_set():
            try:
                socket.create_connection(address, timeout=1).close()
            except OSError:
                return

    client = threading.Thread(target=connect)
    client.start()
    await asyncio.sleep(0.02)
    await sandbox.stop()
    ended.set()
    await asyncio.to_thread(client.join)
