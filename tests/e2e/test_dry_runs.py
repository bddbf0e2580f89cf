"""POST /dry-run of a running scheduler: what the command says of the same cluster, and who may ask."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from policysched.cli.formats import API_VERSION
from tests.app.serving.ports import free_port
from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import NAME, node, pod, policy
from tests.e2e.schedulers import COMMAND, spawned
from tests.e2e.server import Server
from tests.e2e.test_serving import ALL_OPEN, RBAC, Port, make_account, serving
from tests.e2e.waiting import until


async def ask(port: Port, of: dict[str, Any], query: str = "", token: str = "") -> tuple[int, Any]:
    code, text = await port.get(f"/dry-run?{query}", token, "POST", data=json.dumps(of))
    return code, json.loads(text)


async def test_answer_is_what_the_command_says_of_the_live_cluster(server: Server, tmp_path: Any) -> None:
    await server.load(
        node("n1"), node("n2"), node("n3"), policy("off", filters=[{"name": "f", "require": 'node.name != "n1"'}])
    )
    async with serving(server.kubeconfig, ALL_OPEN) as (_, port):
        await server.load(pod("placed"))
        await server.placed("placed")
        await until(lambda: ask(port, pod("placed")), lambda answer: answer[0] == 422)
        of = pod("asked")
        code, record = await ask(port, of, "seed=3")
        file = tmp_path / "pod.json"
        file.write_text(json.dumps(of))
        command = [str(COMMAND), "dry-run", "--cluster=live", f"--kubeconfig={server.kubeconfig}", f"--pod={file}"]
        process = await asyncio.create_subprocess_exec(
            *command, "--seed=3", "-o", "json", stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert (code, {"apiVersion": API_VERSION, "kind": "DryRun", **record}) == (200, json.loads(out))
        assert record["selected"] in {"n2", "n3"}
        assert await server.nodes_of() == await server.placed("placed")


async def test_pods_are_placed_while_many_ask(server: Server) -> None:
    await server.load(*(node(f"n{number}") for number in range(4)))
    async with serving(server.kubeconfig, ALL_OPEN) as (_, port):
        asking = [asyncio.create_task(ask(port, pod(f"asked-{number}"))) for number in range(30)]
        await server.load(*(pod(f"p{number}") for number in range(10)))
        placed = await server.placed(*(f"p{number}" for number in range(10)))
        assert len(placed) == 10
        codes = [code for code, _ in await asyncio.gather(*asking)]
        assert set(codes) <= {200, 429}
        assert 200 in codes
        code, record = await ask(port, pod("last"))
        assert (code, record["schedulerName"], record["result"]) == (200, NAME, "Scheduled")


@pytest.mark.controlplane
async def test_who_may_not_ask_is_refused(real_server: Server, control_plane: ControlPlane) -> None:
    tokens = {name: await make_account(real_server, control_plane, name) for name in ("may-ask", "may-not")}
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "asks-scheduler"}}
    rules = [{"nonResourceURLs": ["/dry-run"], "verbs": ["post"]}]
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": "may-ask"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "asks-scheduler"}
    binding = role | {"kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": reference}
    control_plane.kubectl("apply", "-f", "-", stdin=[role | {"rules": rules}, binding])
    await real_server.load(node("n1"))
    async with serving(real_server.kubeconfig) as (_, port):
        assert (await ask(port, pod("p")))[0] == 403
        assert (await ask(port, pod("p"), token=tokens["may-ask"] + "x"))[0] == 401
        code, said = await ask(port, pod("p"), token=tokens["may-not"])
        user = "system:serviceaccount:default:may-not"
        assert (code, said["message"]) == (403, f'forbidden: User "{user}" cannot post path "/dry-run"')
        code, record = await until(lambda: ask(port, pod("p"), token=tokens["may-ask"]), lambda one: one[0] == 200)
        assert record["selected"] == "n1"
        assert (await port.get("/dry-run", tokens["may-ask"]))[0] == 403
        assert (await port.get("/metrics", tokens["may-ask"], "POST"))[0] == 403


OUT_OF_TREE = """
from policysched.plugin import unschedulable

class Odd:
    def filter(self, state, pod, node):
        return None if int(node.name[1:]) % 2 else unschedulable("node(s) are even")

    def score(self, state, pod, node):
        return int(node.name[1:])
"""


async def test_leader_and_standby_answer_alike_with_an_out_of_tree_plugin(server: Server, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(OUT_OF_TREE)
    config = tmp_path / "config.yaml"
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    plugins = {"multiPoint": {"enabled": [{"name": "Odd", "weight": 100}]}}
    lease = {"leaderElect": True, "resourceNamespace": "default", "resourceName": "odd"}
    content = {"leaderElection": lease, "clientConnection": {"kubeconfig": str(server.kubeconfig)}}
    config.write_text(json.dumps({**head, **content, "profiles": [{"schedulerName": NAME, "plugins": plugins}]}))
    flags = (f"--config={config}", f"--plugin={tmp_path}/odd.py:Odd", "--bind-address=127.0.0.1", ALL_OPEN)
    leader, standby = Port(free_port()), Port(free_port())
    await server.load(*(node(f"n{number}") for number in range(1, 6)))
    async with (
        spawned(*flags, f"--secure-port={leader.number}"),
        spawned(*flags, f"--secure-port={standby.number}", wait=False) as standing,
    ):
        await standing.said("waiting for it")
        await standby.says("/readyz", 200)
        await server.load(pod("placed", requests={"cpu": "3"}))
        assert await server.placed("placed") == {"placed": "n5"}
        of = pod("asked", requests={"cpu": "3"})

        async def records() -> list[Any]:
            return [await ask(port, of, "seed=1") for port in (leader, standby)]

        first, second = await until(records, lambda found: all(one["selected"] == "n3" for _, one in found))
        assert first == second
        assert first[1]["rejected"]["n2"] == {
            "plugin": "Odd", "code": "Unschedulable", "reasons": ["node(s) are even"],
        }  # fmt: skip
        assert first[1]["scores"]["n3"]["Odd"] > first[1]["scores"]["n1"]["Odd"] > 0
        assert [await role_of(port) for port in (leader, standby)] == ["leader", "standby"]
        assert await server.nodes_of() == {"placed": "n5"}


async def role_of(port: Port) -> str:
    """Ask who answers."""
    url = f"https://127.0.0.1:{port.number}/dry-run"
    async with aiohttp.ClientSession() as session, session.post(url, json=pod("asked"), ssl=False) as answer:
        return answer.headers["Policysched-Role"]
