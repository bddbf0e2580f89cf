"""A real Prometheus server on loopback that scrapes an exporter of ours a few times a second."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web

from tests.controlplane.programs import Program, Warden, free_port
from tests.metric_sources.program import binary

SCRAPES: Final = "200ms"
DEADLINE: Final = 30.0
"""How long the server may take to start. Units: seconds."""


@dataclass
class Exporter:
    """A page of numbers, as node exporters serve them: one series a node."""

    load: dict[str, float] = field(default_factory=dict)
    port: int = 0

    async def respond(self, _: web.Request) -> web.Response:
        lines = [f'node_demo_load{{node="{node}"}} {number}\n' for node, number in self.load.items()]
        return web.Response(text="# TYPE node_demo_load gauge\n" + "".join(lines))


@asynccontextmanager
async def exporter(load: dict[str, float]) -> AsyncIterator[Exporter]:
    made = Exporter(load)
    app = web.Application()
    app.router.add_get("/metrics", made.respond)
    runner = web.AppRunner(app, shutdown_timeout=0.01, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.port = runner.addresses[0][1]
        yield made
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class RealPrometheus:
    """The server's process, and where it listens."""

    program: Program
    url: str


@asynccontextmanager
async def real_prometheus(folder: Path, scraped: Exporter | dict[str, Any]) -> AsyncIterator[RealPrometheus]:
    """Run a server; it is stopped by its process id, also where this process dies first.

    Args:
        folder: Where it keeps what it scrapes.
        scraped: An exporter, or a whole entry of `scrape_configs`.
    """
    data, port = folder / "data", free_port()
    config = folder / "prometheus.yml"
    if isinstance(scraped, Exporter):
        job: dict[str, Any] = {"job_name": "nodes", "static_configs": [{"targets": [f"127.0.0.1:{scraped.port}"]}]}
    else:
        job = scraped
    config.write_text(
        json.dumps({"global": {"scrape_interval": SCRAPES, "scrape_timeout": SCRAPES}, "scrape_configs": [job]})
    )
    data.mkdir()
    warden = Warden(data)
    command: list[str | Path] = [
        binary(),
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    program = Program("prometheus", command, folder / "prometheus.log", warden)
    program.start()
    try:
        made = RealPrometheus(program, f"http://127.0.0.1:{port}")
        await _until_ready(made)
        yield made
    finally:
        await asyncio.to_thread(program.stop)
        await asyncio.to_thread(warden.dismiss)


async def _until_ready(server: RealPrometheus) -> None:
    async with aiohttp.ClientSession() as session, asyncio.timeout(DEADLINE):
        while True:
            assert server.program.running, server.program.told()
            try:
                async with session.get(f"{server.url}/-/ready") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)
