"""Roles and service accounts as a real API server grants them: what the scheduler may do, and what it does without."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kubernetes.aio.config import incluster_config

from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import Json, node, only, pod
from tests.e2e.schedulers import in_process
from tests.e2e.server import Server

pytestmark = pytest.mark.controlplane


def rule(group: str, resources: str, *verbs: str) -> Json:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs)}


ROLE: Json = next(
    obj
    for obj in yaml.safe_load_all((Path(__file__).parents[2] / "deploy" / "base" / "rights.yaml").read_text("utf-8"))
    if obj["kind"] == "ClusterRole"
)
POLICIES = tuple(one for one in ROLE["rules"] if one["apiGroups"] == ["policysched.io"])
SCHEDULING = tuple(one for one in ROLE["rules"] if one not in POLICIES)
LEASES = rule("coordination.k8s.io", "leases", "get", "list", "create", "update")


async def test_scheduler_needs_no_more_than_its_role(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path
) -> None:
    control_plane.allow("scheduler", *SCHEDULING, *POLICIES, LEASES)
    await real_server.load(node("n1"), node("n2"), only("pin", "n2"), pod("fits"), pod("big", requests={"cpu": "9"}))
    async with in_process(control_plane.token_kubeconfig(tmp_path / "config", "scheduler")) as scheduler:
        await real_server.policy_says("pin", 1, Active="Enforce")
        assert await real_server.placed("fits") == {"fits": "n2"}
    for name, reason in (("fits", "Scheduled"), ("big", "FailedScheduling")):
        assert [one["reason"] for one in await real_server.events(name)] == [reason]
    assert not scheduler.saying("WARNING") + scheduler.saying("ERROR")


async def test_scheduler_that_may_not_annotate_policies_says_so_and_goes_on(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path
) -> None:
    less = (rule("policysched.io", "schedulingpolicies", "list", "watch"), POLICIES[1])
    control_plane.allow("scheduler", *SCHEDULING, *less, LEASES)
    await real_server.load(node("n1"), node("n2"), only("a", "n2"), only("b", "n2"), pod("web"))
    async with in_process(control_plane.token_kubeconfig(tmp_path / "config", "scheduler")) as scheduler:
        for name in ("a", "b"):
            await real_server.policy_says(name, 1, Active="Enforce")
        assert await real_server.placed("web") == {"web": "n2"}
        (line,) = await scheduler.said("WARNING")
    assert "cannot store the generation in force; a restart may lose it" in line
    assert 'cannot patch resource "schedulingpolicies"' in line


async def test_scheduler_waits_until_it_may_read_policies(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path
) -> None:
    control_plane.allow("scheduler", *SCHEDULING)
    await real_server.load(node("n1"), node("n2"), only("pin", "n2"), pod("web"))
    config = control_plane.certificate_kubeconfig(tmp_path / "config", "scheduler")
    async with in_process(config, wait=False) as scheduler:
        await scheduler.said('User "scheduler" cannot list resource "schedulingpolicies"')
        assert await real_server.nodes_of() == {"web": ""}
        control_plane.allow("scheduler", *POLICIES, name="policies")
        assert await real_server.placed("web") == {"web": "n2"}


async def test_scheduler_in_a_pod_uses_the_token_of_its_service_account(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = "/api/v1/namespaces/kube-system/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "policysched"}}
    await real_server.call("POST", accounts, account)
    control_plane.allow("system:serviceaccount:kube-system:policysched", *SCHEDULING, *POLICIES, name="account")
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made = await real_server.call("POST", f"{accounts}/policysched/token", asked)
    (tmp_path / "token").write_text(made["status"]["token"])
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    authority = control_plane.identities.authority.certificate
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", control_plane.url.rpartition(":")[2])
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    await real_server.load(node("n1"), node("n2"), only("pin", "n2"))
    async with in_process(None):
        await real_server.load(pod("web"))
        assert await real_server.placed("web") == {"web": "n2"}
    await real_server.call("DELETE", f"{accounts}/policysched")
