"""Users' certificates and front proxies' at the secure port, beside a real kube-scheduler with the same flags."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.app.serving.test_users import client_tls
from tests.controlplane.certificates import Authority
from tests.controlplane.plane import ControlPlane
from tests.e2e.server import Server
from tests.e2e.test_permissions import POLICIES, SCHEDULING
from tests.e2e.test_serving import Port, serving
from tests.requeueing.control_plane import KubeScheduler

CONFIGURATION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
MASTERS = ("system:masters",)
FOR_MASTER = {"X-Remote-User": "jane", "X-Remote-Group": "system:masters"}
FOR_NOBODY = {"X-Remote-User": "jane"}


@pytest.mark.controlplane
async def test_front_proxies_are_believed_as_by_kube_scheduler(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path
) -> None:
    users, proxies = control_plane.identities.authority, Authority(tmp_path)
    flags = (
        f"--client-ca-file={users.certificate}",
        f"--requestheader-client-ca-file={proxies.certificate}",
        "--requestheader-allowed-names=front-proxy",
        "--authorization-always-allow-paths=/livez",
    )
    of_proxy, of_master = proxies.client("front-proxy", ()), users.client("root", MASTERS)
    asked: dict[str, tuple[ssl.SSLContext, dict[str, str]]] = {
        "a proxy for a master": (client_tls(of_proxy), FOR_MASTER),
        "a proxy for somebody": (client_tls(of_proxy), FOR_NOBODY),
        "a proxy for itself": (client_tls(of_proxy), {}),
        "a proxy of another name": (client_tls(proxies.client("another", ())), FOR_MASTER),
        "a master of the proxies' authority": (client_tls(proxies.client("posing", MASTERS)), {}),
        "a user with headers": (client_tls(users.client("joe", ())), FOR_MASTER),
        "a master": (client_tls(of_master), {}),
        "nobody with headers": (client_tls(None), FOR_MASTER),
    }

    async def codes(port: Port) -> dict[str, int]:
        answers = {what: await port.get("/configz", tls=tls, headers=said) for what, (tls, said) in asked.items()}
        return {what: code for what, (code, _) in answers.items()}

    with KubeScheduler(control_plane, CONFIGURATION | {"profiles": [{"schedulerName": "kube"}]}, *flags) as kube:
        async with serving(real_server.kubeconfig, *flags, wait=False) as (_, port):
            await port.says("/livez", 200)
            ours, theirs = await codes(port), await codes(Port(kube.port))
    assert ours == theirs
    assert ours["a proxy for a master"] == ours["a master"] == 200
    assert ours["a proxy for itself"] == 401


@pytest.mark.controlplane
async def test_authorities_that_cannot_be_read_end_the_start_where_that_is_not_tolerated(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path
) -> None:
    control_plane.allow("scheduler", *SCHEDULING, *POLICIES)
    config = control_plane.token_kubeconfig(tmp_path / "config", "scheduler")
    strict = "--authentication-tolerate-lookup-failure=false"
    async with serving(config, strict, wait=False) as (scheduler, _):
        await scheduler.said(
            "--authentication-tolerate-lookup-failure=false: cannot read the authorities of client certificates"
        )
        assert await scheduler.exit_code() == 2
    async with serving(real_server.kubeconfig, strict) as (_, port):
        await port.says("/readyz", 200)
