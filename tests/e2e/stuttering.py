"""A network between a scheduler and its API server that stutters: bytes come in pieces and late, connections break."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

PIECES = (1, 7, 100, 3000)
"""About how large pieces are. Units: bytes."""
BREAKS_WITHIN = 100
"""One connection at least breaks while bytes come this often, at a moment by chance."""


@dataclass
class Network:
    """The way to a sandbox, which answers for its own name alone; all is well until `stutters` is set."""

    port: int
    name: bytes = b""
    """What the sandbox is called by those who come this way."""
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    stutters: bool = False
    broken: int = 0
    until_break: int = BREAKS_WITHIN // 2
    """How often bytes come before the next connection breaks."""
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on in both directions until one of them ends or breaks."""
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        self._open |= {writer, back}
        pumps = [asyncio.create_task(self._pump(*way)) for way in ((reader, back), (there, writer))]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for one in pumps:
            one.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for end in (writer, back):
            end.transport.abort()
            self._open.discard(end)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            data = data.replace(self.name, b"127.0.0.1:%d" % self.port)
            if self.stutters and self._breaks():
                self.broken += 1
                target.write(data[: self.chance.randrange(len(data))])
                if self.chance.random() < 0.5:
                    target.write_eof()
                    await asyncio.sleep(0.01)
                return
            while data:
                size = self.chance.choice(PIECES) if self.stutters else len(data)
                target.write(data[:size])
                data = data[size:]
                await target.drain()
                if self.stutters and self.chance.random() < 0.1:
                    await asyncio.sleep(self.chance.random() / 200)

    def _breaks(self) -> bool:
        """Tell whether the connection on which bytes came breaks now."""
        self.until_break -= 1
        if self.until_break > 0:
            return False
        self.until_break = self.chance.randrange(1, BREAKS_WITHIN)
        return True

    def end(self) -> None:
        """Break what is open."""
        for writer in self._open:
            writer.transport.abort()


@asynccontextmanager
async def network(port: int, folder: Path) -> AsyncIterator[tuple[Network, Path]]:
    """Give a network to a port, and the kubeconfig that leads there."""
    made = Network(port)
    server = await asyncio.start_server(made.relay, "127.0.0.1", 0)
    made.name = b"127.0.0.1:%d" % server.sockets[0].getsockname()[1]
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://{made.name.decode()}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    path = folder / "networked"
    path.write_text(yaml.safe_dump(config))
    try:
        yield made, path
    finally:
        server.close()
        made.end()
        await server.wait_closed()
