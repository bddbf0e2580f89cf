"""A fresh API server for each test, the real kubectl pointed at it, and schedulers.

A test that asks for a server alone runs twice: on the sandbox and on a real control plane. One that asks for the
sandbox too, because it makes that fail, runs there only.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest
import yaml

from policysched.app.running.metric_options import NO_METRICS, MetricOptions
from policysched.sandbox import Sandbox
from tests.controlplane.build import binary
from tests.controlplane.plane import ControlPlane
from tests.controlplane.releases import chosen
from tests.e2e import real
from tests.e2e.objects import DEFINITION, Json
from tests.e2e.schedulers import InProcess, Spawned, in_process, spawned
from tests.e2e.server import Server
from tests.e2e.waiting import DEADLINE


class Running(Protocol):
    """Runs a scheduler in this process against the test's server."""

    def __call__(
        self, *names: str, wait: bool = True, metrics: MetricOptions = NO_METRICS
    ) -> AbstractAsyncContextManager[InProcess]: ...


class Spawning(Protocol):
    """Runs a scheduler as a process against the test's server, without an election."""

    def __call__(self, *arguments: str, wait: bool = True) -> AbstractAsyncContextManager[Spawned]: ...


@pytest.fixture
async def bare_sandbox() -> AsyncIterator[Sandbox]:
    """A sandbox that does not know policies yet."""
    made = Sandbox(lambda: datetime.now(UTC), random.Random(7), kubelet_seconds=0.01, kubernetes=chosen().version)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def sandbox(bare_sandbox: Sandbox) -> Sandbox:
    """A sandbox that knows policies."""
    bare_sandbox.load([DEFINITION])
    return bare_sandbox


def write_kubeconfig(sandbox: Sandbox, folder: Path) -> Path:
    """Write the sandbox's kubeconfig."""
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(sandbox.kubeconfig()))
    return path


@pytest.fixture
async def sandbox_server(bare_sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(bare_sandbox.url, write_kubeconfig(bare_sandbox, tmp_path)) as made:
        yield made


@pytest.fixture
async def real_server(control_plane: ControlPlane, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    wanted = request.fixturenames
    bare = "bare_server" in wanted and "server" not in wanted
    async with real.real_server(control_plane, bare=bare) as made:
        yield made


@pytest.fixture
def bare_server(request: pytest.FixtureRequest) -> Server:
    """An API server that does not know policies yet."""
    made: Server = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def server(request: pytest.FixtureRequest, bare_server: Server) -> Server:
    """An API server that knows policies, without nodes."""
    if not isinstance(bare_server, real.RealServer):
        request.getfixturevalue("sandbox")
    return bare_server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the servers of a test."""
    wanted = metafunc.fixturenames
    if "bare_server" not in wanted:
        return
    servers = [pytest.param("sandbox_server", id="sandbox")]
    if "bare_sandbox" not in wanted:
        servers.append(pytest.param("real_server", id="controlplane", marks=pytest.mark.controlplane))
    metafunc.parametrize("bare_server", servers, indirect=True)


@pytest.fixture
def running(bare_server: Server) -> Running:
    def run(
        *names: str, wait: bool = True, metrics: MetricOptions = NO_METRICS
    ) -> AbstractAsyncContextManager[InProcess]:
        return in_process(bare_server.kubeconfig, *names, wait=wait, metrics=metrics)

    return run


@pytest.fixture
async def scheduler(server: Server, running: Running) -> AsyncIterator[InProcess]:
    """A scheduler that runs for the whole test, in this process."""
    async with running() as made:
        yield made


@pytest.fixture
def spawning(bare_server: Server) -> Spawning:
    def run(*arguments: str, wait: bool = True) -> AbstractAsyncContextManager[Spawned]:
        start = (f"--kubeconfig={bare_server.kubeconfig}", "--leader-elect=false")
        return spawned(*start, *arguments, wait=wait)

    return run


@pytest.fixture(scope="session")
def kubectl_program() -> Path:
    return binary("kubectl")


class Kubectl:
    """The real kubectl, pointed at a server."""

    def __init__(self, program: Path, kubeconfig: Path, cache: Path) -> None:
        self._start = (str(program), f"--kubeconfig={kubeconfig}", f"--cache-dir={cache}")

    async def run(self, *arguments: str, stdin: str = "") -> str:
        """Run a command that must succeed, and give what it prints."""
        process = await asyncio.create_subprocess_exec(
            *self._start,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(stdin.encode()), DEADLINE)
        assert process.returncode == 0, output.decode()
        return output.decode()

    async def apply(self, *objects: Json) -> str:
        """Apply objects from one stream of documents."""
        return await self.run("apply", "-f", "-", stdin="\n---\n".join(map(yaml.safe_dump, objects)))


@pytest.fixture
def kubectl(kubectl_program: Path, bare_server: Server, tmp_path: Path) -> Kubectl:
    return Kubectl(kubectl_program, bare_server.kubeconfig, tmp_path / "cache")
