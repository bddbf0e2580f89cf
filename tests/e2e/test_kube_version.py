"""A scheduler follows the minor of its API server, or the minor that `--kube-version` names."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import yaml

from policysched.app.recording.entries import Begin
from policysched.app.recording.file_format import files_of, read_entries
from policysched.sandbox import Sandbox
from tests.app.configuration.test_reading import HEAD
from tests.app.serving.ports import free_port
from tests.e2e.conftest import Spawning
from tests.e2e.objects import NAME, node, pod
from tests.e2e.schedulers import in_process, spawned
from tests.e2e.server import Server
from tests.e2e.test_serving import ALL_OPEN, serving


@pytest.mark.parametrize(
    "case",
    [
        ("v1.36.9", "auto", "v1.36.5", ""),
        ("v1.37.0", "auto", "v1.37.2", ""),
        ("v1.35.4", "auto", "v1.36.5", "has version v1.35.4"),
        ("v1.39.0", "auto", "v1.38.0-beta.0", "has version v1.39.0"),
        ("v1.37.0", "1.36", "v1.36.5", ""),
        ("v1.36.9", "1.37", "v1.37.2", "decisions follow Kubernetes 1.37, which supports API servers of"),
    ],
)
async def test_log_metrics_record_and_dry_runs_name_the_release(
    server: Server, sandbox: Sandbox, tmp_path: Path, case: tuple[str, str, str, str]
) -> None:
    version, flag, release, warning = case
    sandbox.kubernetes = version
    await server.load(node("n1"), pod("web"))
    minor = ".".join(release.removeprefix("v").split(".")[:2])
    flags = (f"--kube-version={flag}", f"--record={tmp_path / 'record'}", ALL_OPEN)
    async with serving(server.kubeconfig, *flags) as (scheduler, port):
        await server.placed("web")
        _, metrics = await port.get("/metrics")
        body = json.dumps(pod("other"))
        _, told = await port.get("/dry-run", method="POST", data=body, headers={"Content-Type": "application/json"})
    first, second = [line for line in scheduler.saying("INFO") if "serving on" not in line][:2]
    assert "starting the scheduler for schedulerName" in first
    assert f"decisions follow Kubernetes {release}" in second
    warned = [line for line in scheduler.saying("WARNING") if "API server" in line]
    assert [warning in line for line in warned] == [True] * bool(warning)
    assert f'kubernetes="{release}"' in metrics
    assert "policysched_kubernetes_skew " in metrics
    assert json.loads(told)["reference"] == minor
    [(_, begin), *_] = read_entries(files_of(tmp_path / "record")[0])
    assert msgspec.convert(begin, Begin).reference == minor


@pytest.mark.parametrize("minor", ["1.34", "1.37.9", "latest", ""])
async def test_other_minors_end_the_start(spawning: Spawning, minor: str) -> None:
    async with spawning(f"--kube-version={minor}", wait=False) as scheduler:
        assert await scheduler.exit_code() == 2
    assert scheduler.lines == [f'error: --kube-version "{minor}" is not one of auto, 1.36, 1.37, 1.38']


async def test_refused_version_is_that_of_the_default_release(server: Server, sandbox: Sandbox) -> None:
    sandbox.faults.fail("GET", "/version", 403, times=None)
    await server.load(node("n1"), pod("web"))
    async with in_process(server.kubeconfig) as scheduler:
        await server.placed("web")
        [warning] = scheduler.saying("WARNING")
        assert "reports no version" in warning


def _write(path: Path, kubeconfig: Path, *points: str) -> Path:
    enabled = {point: {"enabled": [{"name": "NodeName"}]} for point in points}
    config = {
        **HEAD,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": NAME, "plugins": enabled}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


async def test_configuration_is_read_as_the_release_of_the_server_reads_it(
    server: Server, sandbox: Sandbox, tmp_path: Path
) -> None:
    file = _write(tmp_path / "config.yaml", server.kubeconfig, "preFilter")
    await server.load(node("n1"), pod("web"))
    for version, code in (("v1.37.2", 0), ("v1.36.5", 2)):
        sandbox.kubernetes = version
        async with spawned(f"--config={file}", wait=not code) as scheduler:
            if code:
                assert await scheduler.exit_code() == code
            else:
                await server.placed("web")
        assert len(scheduler.saying("preFilter")) == bool(code)


async def test_gates_are_those_of_the_release_of_the_server(server: Server, sandbox: Sandbox) -> None:
    flags = (f"--kubeconfig={server.kubeconfig}", "--leader-elect=false", "--feature-gates=CompositePodGroup=false")
    sandbox.kubernetes = "v1.36.5"
    async with spawned(*flags, wait=False) as scheduler:
        assert await scheduler.exit_code() == 2
    assert scheduler.lines[-1] == "error: --feature-gates: unrecognized feature gate: CompositePodGroup"
    sandbox.kubernetes = "v1.37.2"
    async with spawned(*flags):
        pass
    async with spawned(*flags, "--kube-version=1.36", wait=False) as scheduler:
        assert await scheduler.exit_code() == 2
    assert len(scheduler.lines) == 1


async def test_configuration_that_no_release_reads_ends_the_start_without_a_server(
    server: Server, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.write_text(server.kubeconfig.read_text("utf-8").replace(server.url, f"http://127.0.0.1:{free_port()}"))
    file = _write(tmp_path / "config.yaml", gone, "preFilter", "preEnqueue")
    async with spawned(f"--config={file}", wait=False) as scheduler:
        assert await scheduler.exit_code() == 2
    assert "preEnqueue" in scheduler.lines[-1]


async def test_port_is_served_before_the_server_answers(server: Server, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.write_text(server.kubeconfig.read_text("utf-8").replace(server.url, f"http://127.0.0.1:{free_port()}"))
    async with serving(gone, ALL_OPEN, wait=False) as (_, port):
        await port.says("/livez", 200)
        assert (await port.get("/configz"))[0] == 503
        assert (await port.get("/metrics"))[0] == 200
        text = await port.says("/readyz/informer-sync", 500)
        assert "the API server has not answered yet" in text
