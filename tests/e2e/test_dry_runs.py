"""POST /dry-run of a running scheduler: what the command says of the same cluster, and who may ask."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import NAME, node, pod, policy
from tests.e2e.schedulers import COMMAND
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
        assert (code, record) == (200, json.loads(out))
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
