"""The release that a process follows, and what it reports about the version of its API server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from policysched.app.running import server_version
from policysched.app.running.served_process import NO_ANSWER, ServedProcess
from policysched.app.running.server_version import SkewWatch, release_to_follow, wait_for_version
from policysched.app.serving.refused import RefusedError
from policysched.errors import ConnectionProblemError, UsageError
from policysched.kube.transport import Pacing
from policysched.model.release import DEFAULT, V1_36, V1_37, V1_38, Release


class Server:
    """A transport that gives these answers one after the other, the last one for ever."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = [*answers]
        self.asked = 0
        self.done = asyncio.Event()

    async def server_version(self) -> str:
        self.asked += 1
        if len(self.answers) == 1:
            self.done.set()
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, Exception):
            raise found
        return found


async def at_once(_: float) -> None:
    await asyncio.sleep(0)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]


@pytest.mark.parametrize(
    ("kube_version", "version", "release", "warning"),
    [
        ("auto", "v1.36.9+k3s1", V1_36, ""),
        ("auto", "v1.37.0-alpha.1", V1_37, ""),
        ("auto", "v1.38.1", V1_38, ""),
        ("auto", "v1.35.9", V1_36, "has version v1.35.9; decisions follow Kubernetes 1.36, the nearest known"),
        ("auto", "v1.39.0", V1_38, "has version v1.39.0; decisions follow Kubernetes 1.38, the nearest known"),
        ("auto", "", DEFAULT, f"reports no version; decisions follow Kubernetes {DEFAULT.minor}"),
        ("1.36", "v1.36.5", V1_36, ""),
        ("1.36", "v1.37.2", V1_36, ""),
        ("1.37", "", V1_37, ""),
        ("1.36", "v1.38.0", V1_36, "has version v1.38.0; decisions follow Kubernetes 1.36, which supports API"),
        ("1.37", "v1.36.5", V1_37, "has version v1.36.5; decisions follow Kubernetes 1.37, which supports API"),
    ],
)
def test_release_is_that_of_the_flag_or_the_server(
    kube_version: str, version: str, release: Release, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "policysched")
    assert release_to_follow(kube_version, version) is release
    first = caplog.records[0].getMessage()
    assert first.startswith(f"decisions follow Kubernetes {release.version}")
    assert (version or "no version") in first
    assert ("(preview)" in first) is release.is_preview
    assert [warning in one for one in warnings(caplog)] == [True] * bool(warning)


def test_unknown_minor_is_refused() -> None:
    with pytest.raises(UsageError, match=r"1\.37\.9"):
        release_to_follow("1.37.9", "v1.37.2")


async def test_each_problem_of_the_server_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    down = [ConnectionProblemError("down")] * 3
    server: Any = Server(*down, ConnectionProblemError("refused"), "v1.36.5")
    assert await wait_for_version(server, Pacing(lambda: 0.0, at_once)) == "v1.36.5"
    assert [one.split(";")[0] for one in warnings(caplog)] == ["down", "refused"]
    assert server.asked == 5


def skew_of(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("policysched_kubernetes_skew")


@pytest.mark.parametrize(
    ("kube_version", "release", "versions", "skews", "said"),
    [
        (
            "auto",
            V1_36,
            ["v1.37.2", "v1.36.5", "v1.37.3"],
            [1, 0, 1],
            ["v1.37.2 now; decisions follow Kubernetes 1.36"],
        ),
        ("auto", V1_36, ["v1.37.2", "v1.38.0"], [1, 2], ["v1.37.2 now", "v1.38.0 now"]),
        (
            "auto",
            V1_37,
            ["v1.36.5"],
            [-1],
            ["v1.36.5 now; decisions follow Kubernetes 1.37 until this process restarts"],
        ),
        (
            "auto",
            V1_38,
            ["v1.39.0", "v1.40.0"],
            [1, 2],
            ["has version v1.40.0; decisions follow Kubernetes 1.38, which"],
        ),
        ("auto", V1_36, ["", "main"], [0, 0], []),
        ("1.36", V1_36, ["v1.37.2"], [1], []),
        (
            "1.36",
            V1_36,
            ["v1.38.0", "v1.38.1"],
            [2, 2],
            ["has version v1.38.0; decisions follow Kubernetes 1.36, which"],
        ),
    ],
)
def test_server_that_changes_its_minor_is_reported_once(
    kube_version: str,
    release: Release,
    versions: list[str],
    skews: list[int],
    said: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry, transport = CollectorRegistry(), Server("")
    watch = SkewWatch(transport, kube_version, release, release.version, registry)  # type: ignore[arg-type]
    assert skew_of(registry) == 0
    for version, skew in zip(versions, skews, strict=True):
        watch.see(version)
        assert skew_of(registry) == skew
    assert len(warnings(caplog)) == len(said)
    assert all(part in one for part, one in zip(said, warnings(caplog), strict=True))


async def test_version_is_read_while_the_process_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_version, "CHECK_EVERY", 0.0)
    registry, server = CollectorRegistry(), Server("v1.36.5", ConnectionProblemError("down"), "v1.37.2")
    watch = SkewWatch(server, "auto", V1_36, "v1.36.5", registry)  # type: ignore[arg-type]
    async with asyncio.timeout(60), watch.active():
        await server.done.wait()
        while not caplog.records:
            await asyncio.sleep(0)
    assert skew_of(registry) == 1
    asked = server.asked
    await asyncio.sleep(0.01)
    assert (server.asked, len(warnings(caplog))) == (asked, 1), "it ends with the process"


async def test_port_says_that_the_server_has_not_answered() -> None:
    served = ServedProcess(asyncio.Event())
    port = served.served(CollectorRegistry(), lambda _: None)
    assert (port.is_busy(), list(port.pods())) == (True, [])
    assert served.health.answer("/livez") == (200, "ok")
    assert served.health.answer("/readyz/informer-sync") == (500, f"internal server error: {NO_ANSWER}\n")
    for document in port.documents.values():
        with pytest.raises(RefusedError, match=NO_ANSWER):
            document()
    with pytest.raises(RefusedError, match=NO_ANSWER):
        await port.decide(None)  # type: ignore[arg-type]
