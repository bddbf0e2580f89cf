"""Starting: what is missing is said in one line, and only a kubeconfig that cannot be used ends it."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from pathlib import Path

import pytest
import yaml

from policysched.kube import exec_plugin
from policysched.sandbox import Sandbox
from tests.e2e.conftest import Running, Spawning, write_kubeconfig
from tests.e2e.objects import DEFINITION, node, only, pod, unfit
from tests.e2e.schedulers import in_process, spawned
from tests.e2e.server import Server
from tests.e2e.waiting import until_true
from tests.kube.test_kube_connection import kubeconfig

POLICIES = "schedulingpolicies"


async def test_scheduler_works_without_the_definition_and_takes_policies_once_it_is_there(
    bare_server: Server, running: Running
) -> None:
    server = bare_server
    await server.load(node("n1"), node("n2"))
    async with running() as scheduler:
        await server.load(pod("before"))
        await server.placed("before")
        (warning,) = scheduler.saying("WARNING")
        assert f"continuing without {POLICIES}" in warning
        assert warning.endswith("; to install the CRD: policysched crd | kubectl apply -f -")
        await server.load(DEFINITION)
        await server.load(only("pin", "n2"))
        await server.policy_says("pin", 1, Active="Enforce")
        await server.load(pod("after"))
        assert await server.placed("after") == {"after": "n2"}
        assert len(scheduler.saying("WARNING")) == 1


async def test_scheduler_goes_on_when_the_definition_is_removed(server: Server, running: Running) -> None:
    await server.load(node("n1"), only("pin", "nowhere"))
    async with running():
        await server.load(pod("web"))
        await server.turned_away("web", unfit(1, '1 policy pin/here: node.name == "nowhere"'))
        await server.delete("CustomResourceDefinition", "schedulingpolicies.policysched.io")
        await server.placed("web")


async def test_scheduler_waits_while_policies_are_forbidden(server: Server, sandbox: Sandbox, running: Running) -> None:
    sandbox.faults.deny(f"/{POLICIES}")
    await server.load(node("n1"), node("n2"), pod("web"))
    async with running(wait=False) as scheduler:
        await until_true(lambda: sandbox.faults.seen >= 2)
        (warning,) = scheduler.saying("WARNING")
        assert warning.startswith(f"WARNING {POLICIES}: forbidden: ")
        assert await server.nodes_of() == {"web": ""}
        sandbox.faults.clear()
        await server.load(only("pin", "n2"))
        assert await server.placed("web") == {"web": "n2"}
        assert len(scheduler.saying("WARNING")) == 1


@pytest.mark.parametrize("resource", ["nodes", "pods", "namespaces", "services", "replicationcontrollers"])
async def test_scheduler_waits_for_what_it_must_know(
    server: Server, sandbox: Sandbox, running: Running, resource: str
) -> None:
    await server.load(node("n1"), pod("web"))
    sandbox.faults.deny(f"/api/v1/{resource}[?]")
    async with running(wait=False) as scheduler:
        await scheduler.said(f"WARNING {resource}: forbidden: ")
        assert (await server.get("Pod", "web"))["spec"].get("nodeName", "") == ""
        sandbox.faults.clear()
        await server.placed("web")


async def test_scheduler_works_without_device_classes(server: Server, sandbox: Sandbox, running: Running) -> None:
    sandbox.faults.deny("/deviceclasses")
    await server.load(node("n1"), pod("web"))
    async with running() as scheduler:
        await server.placed("web")
        (warning,) = scheduler.saying("WARNING")
        assert "continuing without deviceclasses" in warning


async def test_scheduler_waits_for_a_server_that_is_down(sandbox: Sandbox, server: Server, spawning: Spawning) -> None:
    await server.load(node("n1"), pod("web"))
    port = int(server.url.rpartition(":")[2])
    await sandbox.stop()
    async with spawning(wait=False) as scheduler:
        await scheduler.said(f"cannot connect to {server.url}: ")
        await sandbox.start(port)
        await server.placed("web")
        (warning,) = scheduler.saying("WARNING")
        assert warning.endswith("check the kubeconfig and the API server; retrying until it answers")


async def test_scheduler_that_waits_for_a_server_ends_on_sigterm(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{taken.getsockname()[1]}"}}],
            "users": [{"name": "u", "user": {}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        async with spawned(f"--kubeconfig={path}", wait=False) as scheduler:
            await scheduler.said("cannot connect to ")
            assert await scheduler.end() == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no kubeconfig at "),
        ("{", "is not YAML: "),
    ],
)
async def test_kubeconfig_that_cannot_be_used_ends_the_start(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    async with spawned(f"--kubeconfig={path}", wait=False) as scheduler:
        assert await scheduler.exit_code() == 2
    (line,) = scheduler.lines
    assert line.startswith("error: ")
    assert str(path) in line
    assert words in line


async def test_context_that_does_not_exist_ends_the_start(spawning: Spawning) -> None:
    async with spawning("--context=moon", wait=False) as scheduler:
        assert await scheduler.exit_code() == 2
    (line,) = scheduler.lines
    assert 'has no context "moon"; it has ' in line


async def test_flag_that_does_not_exist_ends_the_start(spawning: Spawning) -> None:
    async with spawning("--scheduler-nam=x", wait=False) as scheduler:
        assert await scheduler.exit_code() == 2
    assert "--scheduler-nam" in scheduler.lines[0]


async def test_kubeconfig_is_taken_from_the_environment(
    server: Server, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(sandbox, tmp_path)))
    await server.load(node("n1"), pod("web"))
    async with in_process(None):
        await server.placed("web")


async def test_metrics_file_that_is_a_pipe_ends_the_start(spawning: Spawning, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    async with spawning(f"--metrics-file={tmp_path / 'pipe'}", wait=False) as scheduler:
        assert await scheduler.exit_code() == 2
    assert scheduler.lines == [f"error: {tmp_path / 'pipe'} cannot be followed: it is not a regular file"]


@pytest.mark.parametrize("hangs", ["credentials", "config"])
async def test_process_that_is_told_to_stop_waits_for_nothing_that_hangs(hangs: str, tmp_path: Path) -> None:
    begun, pipe = tmp_path / "begun", tmp_path / "pipe"
    os.mkfifo(pipe)
    arguments = ["-c", f"touch {begun}; exec sleep 1000"]
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": arguments}
    (tmp_path / "config").write_text(yaml.safe_dump(kubeconfig("http://127.0.0.1:1", {"exec": plugin})))
    flags = () if hangs == "credentials" else ("--config", str(pipe))
    writers = []
    async with spawned("--kubeconfig", str(tmp_path / "config"), *flags, wait=False) as process:
        if hangs == "credentials":
            await until_true(begun.exists)
        else:
            writers.append(await asyncio.to_thread(os.open, pipe, os.O_WRONLY))  # comes back as it is opened to be read
        started = time.monotonic()
        assert await process.end() == 0
        assert time.monotonic() - started < exec_plugin.PATIENCE / 2
    for one in writers:
        os.close(one)
