"""A started sandbox, a client for it and the real kubectl pointed at it."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import yaml

from policysched.sandbox import Sandbox
from tests.controlplane.build import binary
from tests.controlplane.releases import RELEASES, chosen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

Json = dict[str, Any]


@dataclass
class Clock:
    """A clock that tests may set forward."""

    offset: timedelta = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def forward(self, seconds: float) -> None:
        self.offset += timedelta(seconds=seconds)


class Api:
    """Requests to the sandbox; each answers with the status code and the decoded body."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def call(
        self, method: str, path: str, body: Any = None, *, media: str = "application/json", **query: str
    ) -> tuple[int, Json]:
        data = None if body is None else json.dumps(body)
        async with self.session.request(
            method, self.url + path, data=data, params=query, headers={"Content-Type": media}
        ) as response:
            return response.status, await response.json(content_type=None)

    async def get(self, path: str, **query: str) -> tuple[int, Json]:
        return await self.call("GET", path, **query)

    async def post(self, path: str, body: Any, **query: str) -> tuple[int, Json]:
        return await self.call("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: str) -> tuple[int, Json]:
        return await self.call("PUT", path, body, **query)

    async def merge(self, path: str, body: Any, **query: str) -> tuple[int, Json]:
        return await self.call("PATCH", path, body, media="application/merge-patch+json", **query)

    async def strategic(self, path: str, body: Any, **query: str) -> tuple[int, Json]:
        return await self.call("PATCH", path, body, media="application/strategic-merge-patch+json", **query)

    async def delete(self, path: str, body: Any = None, **query: str) -> tuple[int, Json]:
        return await self.call("DELETE", path, body, **query)

    async def watch(self, path: str, count: int, **query: str) -> list[Json]:
        """Read so many events of a watch, or all until it ends with count 0."""
        events: list[Json] = []
        params = {"watch": "true", "timeoutSeconds": "20"} | query
        async with self.session.get(self.url + path, params=params) as response:
            assert response.status == 200, await response.text()
            async for line in response.content:
                events.append(json.loads(line))
                if len(events) == count:
                    break
        return events

    async def until(self, path: str, holds: Any, seconds: float = 60) -> Json:
        """Read an object again and again until something holds."""
        async with asyncio.timeout(seconds):
            while True:
                _, found = await self.get(path)
                if holds(found):
                    return found
                await asyncio.sleep(0.01)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def sandbox(clock: Clock) -> AsyncIterator[Sandbox]:
    made = Sandbox(clock, random.Random(7), kubelet_seconds=0.01)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def quiet(clock: Clock) -> AsyncIterator[Sandbox]:
    """A sandbox in which nobody but the test acts, with a short history."""
    made = Sandbox(clock, random.Random(7), kubelet_seconds=None, history=8)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


@pytest.fixture
def api(sandbox: Sandbox, session: aiohttp.ClientSession) -> Api:
    return Api(session, sandbox.url)


@pytest.fixture
def quiet_api(quiet: Sandbox, session: aiohttp.ClientSession) -> Api:
    return Api(session, quiet.url)


@pytest.fixture(scope="session")
def kubectl(request: pytest.FixtureRequest) -> Path:
    """The kubectl of a minor, by default the chosen one."""
    return binary("kubectl", RELEASES[getattr(request, "param", chosen().minor)])


class Kubectl:
    """The real kubectl, pointed at a sandbox."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._start = [str(program), f"--kubeconfig={folder / 'config'}", f"--cache-dir={folder / 'cache'}"]

    async def run(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        """Run a command and return what it prints, errors included; its exit code must be as told."""
        process = await asyncio.create_subprocess_exec(
            *self._start,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(stdin.encode()), 120)
        text = output.decode()
        assert process.returncode == code, text
        return text

    async def json(self, *arguments: str) -> Json:
        found: Json = json.loads(await self.run(*arguments, "-o", "json"))
        return found

    async def apply(self, *objects: Json) -> str:
        return await self.run("apply", "-f", "-", stdin="\n---\n".join(map(yaml.safe_dump, objects)))


@pytest.fixture
def cli(sandbox: Sandbox, kubectl: Path, tmp_path: Path) -> Kubectl:
    (tmp_path / "config").write_text(yaml.safe_dump(sandbox.kubeconfig()))
    return Kubectl(kubectl, tmp_path)
