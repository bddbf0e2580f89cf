"""The scheduler with the rights of `deploy/` and no others: none is missing, and none is too many."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.model.kinds import KINDS
from policysched.model.release import RELEASES
from tests.controlplane.api import Json
from tests.controlplane.releases import chosen
from tests.deploy.audit import Call, Right, calls, forbidden, rights, unused
from tests.deploy.conftest import ACCOUNT, OF_STATIC_POD, Audited
from tests.deploy.installed import Installed, account_kubeconfig, running, started, token
from tests.deploy.rendering import DEPLOY, kustomized, own_roles, static_pod
from tests.e2e.objects import DEFINITION, node, only, pod
from tests.e2e.real import RealServer
from tests.e2e.test_devices import claim as device_claim
from tests.e2e.test_devices import claiming as claiming_devices
from tests.e2e.test_devices import device_class, resource_slice
from tests.e2e.test_volumes_real import claim, claiming, storage_class, volume
from tests.e2e.waiting import until

pytestmark = pytest.mark.controlplane
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
GPU = "example.com/gpu"
BROKEN_WEBHOOK: Json = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "no-bindings"},
    "webhooks": [
        {
            "name": "no-bindings.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
            ],
        }
    ],
}


async def installed(server: RealServer, overlay: str) -> list[Json]:
    """Apply an overlay with kubectl, and give its objects."""
    assert server.plane is not None
    crds = str(DEPLOY.parent / "crds")
    await asyncio.to_thread(server.plane.kubectl, "apply", "-f", crds)
    await asyncio.to_thread(server.plane.await_use, [DEFINITION])
    await asyncio.to_thread(server.plane.kubectl, "apply", "-k", str(DEPLOY / overlay))
    return kustomized(DEPLOY / overlay)


def own_rights(objects: list[Json]) -> list[Right]:
    """Give what the roles of an installation grant."""
    return rights(own_roles(objects))


async def places_and_explains(server: RealServer, audited: Audited) -> None:
    """Have a policy take force, break and be changed, a pod placed and another turned away again and again."""
    await server.load(only("pin", "n2"))
    await server.policy_says("pin", 1, Active="Enforce")
    await server.load(pod("web"))
    assert await server.placed("web") == {"web": "n2"}
    await _edit(server, "node.")
    await server.policy_says("pin", 2, Active="LastGoodGeneration")
    await _edit(server, 'node.name == "elsewhere"')
    await server.policy_says("pin", 3, Active="Enforce")
    await server.load(pod("late"))

    async def told_again() -> bool:
        generation = (await server.get("SchedulingPolicy", "pin"))["metadata"]["generation"]
        await _edit(server, f'node.name == "elsewhere-{generation}"')
        await server.policy_says("pin", generation + 1, Active="Enforce")
        return any((call.verb, call.resource) == ("patch", "events") for call in calls(audited.events(ACCOUNT)))

    await until(told_again, bool)
    await server.delete("SchedulingPolicy", "pin")
    await server.placed("late")


async def _edit(server: RealServer, rule: str) -> None:
    await server.patch("SchedulingPolicy", "pin", {"spec": {"filters": [{"name": "here", "require": rule}]}})


async def preempts(server: RealServer) -> None:
    """Have a pod of higher priority take the place of another."""
    await server.load(
        *({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
          for name, value in (("low", 1), ("high", 1000)))
    )  # fmt: skip
    await server.load(node("big", cpu="32", labels={"big": "yes"}))
    big: dict[str, Any] = {
        "requests": {"cpu": "30"},
        "nodeSelector": {"big": "yes"},
        "terminationGracePeriodSeconds": 0,
    }
    await server.load(pod("low", priorityClassName="low", **big))
    await server.placed("low")
    await server.load(pod("high", priorityClassName="high", **big))
    assert await server.placed("high") == {"high": "big"}


async def binds_volumes(server: RealServer) -> None:
    """Have a volume chosen for a claim, and a claim told on which node its volume is to be made."""
    zone = "topology.kubernetes.io/zone"
    waits, made = (
        storage_class("waits", "WaitForFirstConsumer"),
        storage_class("made", "WaitForFirstConsumer", "pretended.example.com"),
    )
    await server.load(node("na", labels={zone: "a"}), waits, made, volume("v1", "waits", "a"))
    await server.load(claim("data", "waits"), claiming("with-volume", "data"))
    assert await server.placed("with-volume") == {"with-volume": "na"}
    await server.load(claim("new", "made"), claiming("with-new-volume", "new"))
    selected = "volume.kubernetes.io/selected-node"
    await until(
        lambda: server.get("PersistentVolumeClaim", "new"),
        lambda found: selected in found["metadata"].get("annotations", {}),
    )
    await server.delete("Pod", "with-new-volume")


async def gives_devices(server: RealServer, audited: Audited) -> None:
    """Have claims allocated, shared, changed while pods are bound with them, and made for an extended resource."""
    await server.load(device_class(extendedResourceName=GPU), resource_slice("n1", 8))
    await server.load(device_claim("shared"), claiming_devices("first", "shared"))
    await server.placed("first")
    others = [f"other-{number}" for number in range(8)]
    await server.load(*(claiming_devices(name, "shared") for name in others), pod("extended", requests={GPU: "1"}))
    await server.placed("extended", *others)

    async def has_moved_on() -> bool:
        turn = len(calls(audited.events(ACCOUNT)))
        changes = [{"metadata": {"annotations": {"turn": f"{turn}-{number}"}}} for number in range(30)]
        await server.load(claiming_devices(f"late-{turn}", "shared"))
        await asyncio.gather(*(server.patch("ResourceClaim", "shared", change) for change in changes))
        return any((call.verb, call.resource) == ("get", "resourceclaims") for call in calls(audited.events(ACCOUNT)))

    await until(has_moved_on, bool)


async def reads_what_became_of_a_binding(server: RealServer, scheduler: Installed) -> None:
    """Have a binding fail so that it could have been stored, of a pod for which a claim was made."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    await server.call("POST", path, BROKEN_WEBHOOK)

    async def refused() -> bool:
        await server.load(pod("unlucky", requests={GPU: "1"}))
        await asyncio.sleep(0.5)
        if scheduler.scheduler.saying('cannot determine whether pod "default/unlucky" is bound'):
            return True
        await server.delete("Pod", "unlucky")
        return False

    await until(refused, bool)
    await server.call("DELETE", f"{path}/no-bindings")
    await server.placed("unlucky")


async def shows_its_metrics(server: RealServer, scheduler: Installed) -> None:
    """Have somebody with a role read the metrics, and somebody without one not."""
    assert server.plane is not None
    reader = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "default"}}
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:monitoring"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }
    await server.call("POST", "/api/v1/namespaces/default/serviceaccounts", reader)
    assert (await scheduler.port.get("/metrics"))[0] == 403
    await server.call("POST", f"/apis/{group}/v1/clusterrolebindings", binding)
    found = await until(lambda: _metrics(server, scheduler), lambda answer: answer[0] == 200)
    assert "scheduler_schedule_attempts_total" in found[1]


async def _metrics(server: RealServer, scheduler: Installed) -> tuple[int, str]:
    return await scheduler.port.get("/metrics", await token(server, "reader", "default"))


async def takes_a_changed_configuration(scheduler: Installed) -> None:
    """Have the file changed while it runs."""
    content = yaml.safe_load(scheduler.config.read_text())
    content["podMaxBackoffSeconds"] = 2
    scheduler.config.write_text(yaml.safe_dump(content))
    await scheduler.scheduler.said("the changed configuration is active")


async def test_no_right_is_missing_and_none_too_many(audited: Audited, cluster: RealServer, tmp_path: Path) -> None:
    objects = await installed(cluster, "beside")
    await cluster.load(node("n1"), node("n2"))
    kubeconfig = await account_kubeconfig(cluster, tmp_path)
    async with running(objects, kubeconfig, tmp_path) as scheduler:
        await places_and_explains(cluster, audited)
        await preempts(cluster)
        await binds_volumes(cluster)
        await gives_devices(cluster, audited)
        await reads_what_became_of_a_binding(cluster, scheduler)
        await takes_a_changed_configuration(scheduler)
        await shows_its_metrics(cluster, scheduler)
    logged = audited.events(ACCOUNT)
    assert forbidden(logged) == []
    made = calls(logged)
    # the API server asks for this one beside the status of a claim that is allocated or reserved
    beside = Right("patch", "resource.k8s.io", "resourceclaims/binding")
    unread = {kind.plural for kind in KINDS.values() if not kind.read_in(RELEASES[chosen().minor])}
    granted = [
        right for right in own_rights(objects) if right != beside and right.resource.partition("/")[0] not in unread
    ]
    assert unused(granted, made) == []
    assert made >= {
        Call("create", "authentication.k8s.io", "tokenreviews"),
        Call("create", "authorization.k8s.io", "subjectaccessreviews"),
        Call("get", "", "configmaps", "kube-system", "extension-apiserver-authentication"),
    }, "the roles that are bound beside its own are used"


async def test_right_that_is_missing_is_noticed(audited: Audited, cluster: RealServer, tmp_path: Path) -> None:
    objects = await installed(cluster, "beside")
    before = len(audited.events(ACCOUNT))
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/policysched"
    rules = [rule for rule in (await cluster.call("GET", role))["rules"] if rule["apiGroups"] != ["events.k8s.io"]]
    await cluster.call("PATCH", role, {"rules": rules}, "application/merge-patch+json")
    await cluster.load(node("n1"))
    async with running(objects, await account_kubeconfig(cluster, tmp_path), tmp_path) as scheduler:
        await cluster.load(pod("web"))
        await cluster.placed("web")
        await scheduler.scheduler.said("events")
    refused = forbidden(audited.events(ACCOUNT)[before:])
    assert [line for line in refused if "events" in line]


def test_right_that_nobody_uses_is_noticed() -> None:
    used, other = Right("list", "", "pods"), Right("list", "", "secrets")
    leases = Right("get", "coordination.k8s.io", "leases", "kube-system", ("policysched",))
    made = [Call("list", "", "pods"), Call("get", "coordination.k8s.io", "leases", "kube-system", "another")]
    assert unused([used, other, leases], made) == [other, leases]
    assert unused([leases], [*made, Call("get", "coordination.k8s.io", "leases", "kube-system", "policysched")]) == []


async def leader(server: RealServer, name: str) -> str:
    """Give who holds a lease."""
    return str((await server.call("GET", f"{LEASES}/{name}"))["spec"]["holderIdentity"])


async def test_pods_of_the_default_scheduler_are_placed_in_its_place(
    audited: Audited, cluster: RealServer, tmp_path: Path
) -> None:
    objects = await installed(cluster, "in-place")
    before = len(audited.events(ACCOUNT))
    await cluster.load(node("n1"), only("pin", "n1"), pod("web", scheduler="default-scheduler"))
    async with running(objects, await account_kubeconfig(cluster, tmp_path), tmp_path) as scheduler:
        assert await cluster.placed("web") == {"web": "n1"}
        assert await leader(cluster, "kube-scheduler")
        assert not scheduler.scheduler.saying("kube-scheduler's own lease")
    assert forbidden(audited.events(ACCOUNT)[before:]) == []


async def test_static_pod_has_what_it_needs_with_kube_scheduler_s_user(
    audited: Audited, cluster: RealServer, tmp_path: Path
) -> None:
    await installed(cluster, "static-pod")
    before = len(audited.events(OF_STATIC_POD))
    [container] = static_pod()["spec"]["containers"]
    files = {"/etc/kubernetes/policysched.yaml": (DEPLOY / "static-pod" / "scheduler.yaml").read_text()}
    kubeconfig = audited.plane.certificate_kubeconfig(tmp_path / "scheduler.conf", OF_STATIC_POD)
    await cluster.load(node("n1"), only("pin", "n1"), pod("web", scheduler="default-scheduler"))
    async with started(container["args"], files, kubeconfig, tmp_path):
        await cluster.policy_says("pin", 1, Active="Enforce")
        assert await cluster.placed("web") == {"web": "n1"}
    assert forbidden(audited.events(OF_STATIC_POD)[before:]) == []
