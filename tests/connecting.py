"""What happens while a connection is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


@contextmanager
def once_connected(act: Callable[[], object]) -> Iterator[None]:
    """Do something whenever a connection was made, before whoever asked for it goes on."""
    loop = asyncio.get_running_loop()
    create = loop.create_connection

    async def connected(*args: Any, **named: Any) -> Any:
        made = await create(*args, **named)
        act()
        return made

    with patch.object(loop, "create_connection", connected):
        yield
