"""Opens connections that begin TLS and stop, so many a second: `python -m tests.app.serving.flood PORT RATE`."""

from __future__ import annotations

import argparse
import contextlib
import socket
import time
from collections import deque

BEGIN = b"\x16\x03\x01\x02\x00\x01"
"""How a TLS connection begins."""
MOST_OPEN = 400


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("rate", type=float)
    told = parser.parse_args()
    opened: deque[socket.socket] = deque()
    began, number = time.monotonic(), 0
    while True:
        number += 1
        time.sleep(max(0.0, began + number / told.rate - time.monotonic()))
        with contextlib.suppress(OSError):
            opened.append(socket.create_connection(("127.0.0.1", told.port), timeout=1))
            opened[-1].send(BEGIN)
        if len(opened) > MOST_OPEN:
            opened.popleft().close()


if __name__ == "__main__":
    main()
