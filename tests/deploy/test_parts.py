"""A real API server: a verified scrape of the metrics, a release in another namespace, the roles of users."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.plane import ControlPlane
from tests.deploy.definitions import definition
from tests.deploy.installed import account_kubeconfig, running, started
from tests.deploy.operator_machine import PAGE, Operator, commands
from tests.deploy.rendering import DEPLOY, Json, container, kustomized, mounted, one
from tests.deploy.test_chart import released
from tests.e2e.objects import node, pod
from tests.e2e.real import RealServer
from tests.e2e.waiting import until

pytestmark = pytest.mark.controlplane
OBSERVE = PAGE.with_name("observe.md")
SECRETS = "/api/v1/namespaces/kube-system/secrets"
NAMESPACES = "/api/v1/namespaces"


@pytest.fixture
async def monitored(cluster: RealServer) -> AsyncIterator[None]:
    """The definition of ServiceMonitor."""
    assert cluster.plane is not None
    made = definition("servicemonitors")
    name = f"crd/{made['metadata']['name']}"
    await _kubectl(cluster.plane, "create", "-f", "-", stdin=[made])
    await asyncio.to_thread(cluster.plane.await_use, [made])
    yield
    await _kubectl(cluster.plane, "delete", name)


async def _kubectl(plane: ControlPlane, *arguments: str, stdin: list[Json] | None = None) -> str:
    return await asyncio.to_thread(lambda: plane.kubectl(*arguments, stdin=stdin or []))


async def test_prometheus_can_verify_the_port_and_read_the_metrics(
    cluster: RealServer, monitored: None, tmp_path: Path
) -> None:
    assert cluster.plane is not None
    operator = Operator(cluster.plane, tmp_path)
    for command in commands("Scrape the metrics", OBSERVE)[:2]:
        await operator.runs(command)
    with (operator.folder / "kustomization.yaml").open("a") as file:
        file.write("components: [deploy/components/service-monitor]\n")
    await operator.runs("kubectl apply -f crds/ && kubectl apply -k .")
    objects = kustomized(operator.folder)
    [endpoint] = one(objects, "ServiceMonitor")["spec"]["endpoints"]
    tls, credentials = endpoint["tlsConfig"], endpoint["authorization"]["credentials"]
    files = await _content(cluster, tls["ca"]["secret"]["name"])
    token = (await _content(cluster, credentials["name"], credentials["key"]))[credentials["key"]]
    trusted = ssl.create_default_context(cadata=files[tls["ca"]["secret"]["key"]])
    given = {f"/etc/policysched-tls/{name}": text for name, text in files.items()} | mounted(objects)
    kubeconfig = await account_kubeconfig(cluster, tmp_path)
    async with started(container(objects)["args"], given, kubeconfig, tmp_path) as made:
        verified: dict[str, Any] = {"tls": trusted, "server_hostname": tls["serverName"]}
        assert (await made.port.get(endpoint["path"], **verified))[0] == 403
        answer = await until(
            lambda: made.port.get(endpoint["path"], token, **verified), lambda answer: answer[0] == 200
        )
        assert "policysched_build_info{" in answer[1]
        other = verified | {"server_hostname": "policysched.elsewhere.svc"}
        assert (await made.port.get(endpoint["path"], token, **other))[0] == 0, "the name is verified"
    for command in (*commands("Uninstall"), "kubectl -n kube-system delete secret policysched-tls"):
        await operator.runs(command)


async def _content(server: RealServer, name: str, key: str = "ca.crt") -> dict[str, str]:
    """Wait until a Secret of kube-system has a key, and return its content."""
    found = await until(lambda: server.call("GET", f"{SECRETS}/{name}"), lambda secret: key in secret.get("data", {}))
    return {file: base64.b64decode(text).decode() for file, text in found["data"].items()}


async def test_release_in_another_namespace_schedules(cluster: RealServer, tmp_path: Path) -> None:
    assert cluster.plane is not None
    operator = Operator(cluster.plane, tmp_path)
    flags = "--namespace mine --create-namespace --set networkPolicy.enabled=true,webhook.enabled=true"
    await operator.runs(f"make chart && helm install policysched dist/policysched {flags}")
    values = {"networkPolicy": {"enabled": True}, "webhook": {"enabled": True}}
    await cluster.load(node("n1"), pod("web"))
    kubeconfig = await account_kubeconfig(cluster, tmp_path, "mine")
    async with running(released(tmp_path, "mine", **values), kubeconfig, tmp_path) as made:
        assert await cluster.placed("web") == {"web": "n1"}
        leases = await cluster.call("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
        assert "policysched" in [lease["metadata"]["name"] for lease in leases["items"]]
        assert made.scheduler.saying("forbidden") == []
    await operator.runs("helm uninstall policysched --namespace mine --wait && kubectl delete namespace mine")


async def test_users_roles_are_extended(cluster: RealServer) -> None:
    """The controller that aggregates roles is not among those of the tests, so labels and selectors are compared."""
    objects = await asyncio.to_thread(kustomized, DEPLOY / "beside")
    for name in ("view", "edit"):
        path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}"
        [rule] = (await cluster.call("GET", path))["aggregationRule"]["clusterRoleSelectors"]
        labels = one(objects, "ClusterRole", f"policysched-{name}")["metadata"]["labels"]
        assert rule["matchLabels"].items() <= labels.items()
