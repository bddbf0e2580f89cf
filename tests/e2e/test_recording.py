"""`run --record` beside an API server, and `record --cluster live`: files that tell what happened there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from policysched.app.recording.file_format import read_entries
from policysched.app.replay.replay import replay
from tests.e2e.objects import Json, node, pod, policy
from tests.e2e.schedulers import COMMAND, spawned
from tests.e2e.server import Server
from tests.e2e.test_configuration import File, profile, rejected

COOL = policy(
    "cool",
    tier=1,
    metrics=[{"name": "load", "query": "load", "maxAge": "1h"}],
    filters=[{"name": "not-too-hot", "require": "(metrics.load < 80%) ?? false"}],
    scores=[{"name": "coolest", "value": "(1 - metrics.load) * 100"}],
)


def small(name: str, **spec: Any) -> Json:
    return pod(name, requests={"cpu": "1"}, scheduler="ours", **spec)


async def test_process_with_metrics_and_other_configurations_replays(server: Server, tmp_path: Path) -> None:
    file, metrics, folder = File(tmp_path, server), tmp_path / "metrics.yaml", tmp_path / "record"
    file.write(profile("ours"))
    metrics.write_text("load: {n1: 0.9, n2: 0.5, n3: 0.2}", "utf-8")
    await server.load(*(node(f"n{number}") for number in (1, 2, 3)), COOL)
    flags = (f"--metrics-file={metrics}", "--metrics-interval=1s", f"--record={folder}")
    async with spawned("--config", str(file.path), *flags) as scheduler:
        await server.policy_says("cool", 1)
        await server.load(small("a"))
        assert await server.placed("a") == {"a": "n3"}
        await server.load(small("b", nodeSelector={"kubernetes.io/hostname": "n1"}))
        assert "policy cool/not-too-hot" in await rejected(server, "b")
        metrics.write_text("load: {n1: 0.1, n2: 0.5, n3: 0.7}", "utf-8")
        assert await server.placed("b") == {"b": "n1"}
        await server.load(pod("large", requests={"cpu": "9"}, scheduler="ours"))
        assert "Insufficient cpu" in await rejected(server, "large")
        file.write(profile("ours", "NodeResourcesFit"))
        await scheduler.said("the changed configuration is active; changed profiles: ours")
        assert await server.placed("large") == {"large": "n1"}
        await server.patch("SchedulingPolicy", "cool", {"spec": {"tier": 0}})
        await server.policy_says("cool", 2)
        await server.load(small("c"))
        await server.placed("c")
    found = replay([folder])
    assert ([one.to_dict() for one in found.differences], found.remainder, found.exit_code) == ([], [], 0)
    assert found.placed >= 4
    kinds = {entry[0] for path in folder.iterdir() for entry in read_entries(path)}
    assert {"begin", "answer", "swap", "decided", "placed"} <= kinds


async def said(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        str(COMMAND), *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, problem = await process.communicate()
    assert process.returncode in {0, 1}, problem.decode()
    return out.decode()


async def test_snapshot_of_a_cluster_answers_as_the_cluster_does(server: Server, tmp_path: Path) -> None:
    pinned = policy("pinned", filters=[{"name": "p", "require": 'node.name == "n1"'}])
    await server.load(*(node(f"n{number}") for number in (1, 2)), pinned)
    await server.load(pod("waits", requests={"cpu": "9"}), pod("runs", requests={"cpu": "1"}))
    await server.bind("runs", "n2")
    live = ("--cluster=live", f"--kubeconfig={server.kubeconfig}")
    taken = tmp_path / "taken.json"
    await said("record", "-o", str(taken), *live)
    written = json.loads(taken.read_text("utf-8"))
    assert {"n1", "n2", "waits", "runs", "pinned"} <= {one["metadata"]["name"] for one in written["items"]}
    for asked in (("why", "waits"), ("plan", "--without-policy=pinned"), ("dry-run", "--pod", str(tmp_path / "pod"))):
        (tmp_path / "pod").write_text(json.dumps(pod("new")), "utf-8")
        answers = [await said(*asked, "--seed=1", "-o", "json", *where) for where in (live, (f"--cluster={taken}",))]
        assert answers[0] == answers[1], asked
