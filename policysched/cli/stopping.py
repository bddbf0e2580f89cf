"""Ending a process cleanly: SIGTERM and Ctrl-C become an event that the loop waits for."""

from __future__ import annotations

import asyncio
import signal


def stop_on_signals() -> asyncio.Event:
    """Make an event that is set on SIGTERM or SIGINT; it belongs to the running loop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, stop.set)
    return stop
