"""Pods with claims on a real control plane, whose volume controllers bind what the scheduler chose.

Volumes are of a kind that nobody has to attach or mount, because the kubelets only pretend.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from policysched.app.configuration.profiles import configured_profiles
from policysched.app.running import process
from policysched.framework.profile import Profile
from policysched.model.release import Release
from policysched.plugins.volumes.volume_restrictions import CLAIM_REASON
from tests.e2e.objects import NAME, Json, node, pod, unclaimed, unfit
from tests.e2e.schedulers import in_process
from tests.e2e.server import Server
from tests.e2e.waiting import until

pytestmark = pytest.mark.controlplane

ZONE = "topology.kubernetes.io/zone"
SELECTED = "volume.kubernetes.io/selected-node"
NODES = [node("na", labels={ZONE: "a"}), node("nb", labels={ZONE: "b"})]


def storage_class(name: str, mode: str, provisioner: str = "kubernetes.io/no-provisioner") -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


WAITS, AT_ONCE = storage_class("waits", "WaitForFirstConsumer"), storage_class("at-once", "Immediate")


def volume(name: str, of: str, zone: str, size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",)) -> Json:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": list(modes),
            "storageClassName": of,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": "pretended.example.com", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


def claim(name: str, of: str, size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",)) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"storageClassName": of, "accessModes": list(modes), "resources": {"requests": {"storage": size}}},
    }


def claiming(name: str, *claims: str, **fields: Any) -> Json:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return pod(name, volumes=volumes, **fields)


async def bound_to(server: Server, name: str) -> str:
    """Wait until a claim is bound; give its volume."""
    found = await until(
        lambda: server.get("PersistentVolumeClaim", name), lambda one: one["status"].get("phase") == "Bound"
    )
    return str(found["spec"]["volumeName"])


async def available(server: Server, *names: str) -> None:
    """Wait until the controllers have looked at volumes."""
    for name in names:
        await until(
            lambda name=name: server.get("PersistentVolume", name),  # type: ignore[misc]
            lambda one: one.get("status", {}).get("phase") == "Available",
        )


async def test_a_claim_that_waits_takes_the_volume_that_fits_the_chosen_node(real_server: Server) -> None:
    await real_server.load(
        *NODES, WAITS, volume("va", "waits", "a"), volume("vb", "waits", "b", "5Gi"), claim("c", "waits")
    )
    await available(real_server, "va", "vb")
    async with in_process(real_server.kubeconfig):
        await real_server.load(claiming("p", "c", nodeSelector={ZONE: "b"}))
        assert await real_server.placed("p") == {"p": "nb"}
    assert await bound_to(real_server, "c") == "vb"
    assert (await real_server.get("PersistentVolume", "va"))["spec"].get("claimRef") is None


async def test_of_several_volumes_the_smallest_is_taken_and_each_only_once(real_server: Server) -> None:
    volumes = [volume(f"v{size}", "waits", "a", f"{size}Gi") for size in (1, 2, 3)]
    await real_server.load(*NODES, WAITS, *volumes, *(claim(f"c{number}", "waits", "2Gi") for number in (1, 2, 3)))
    await available(real_server, "v1", "v2", "v3")
    async with in_process(real_server.kubeconfig):
        await real_server.load(*(claiming(f"p{number}", f"c{number}") for number in (1, 2)))
        assert await real_server.placed("p1", "p2") == {"p1": "na", "p2": "na"}
        assert {await bound_to(real_server, name) for name in ("c1", "c2")} == {"v2", "v3"}
        await real_server.load(claiming("p3", "c3"))
        await real_server.turned_away("p3", unfit(2, "2 node(s) didn't find available persistent volumes to bind"))


async def test_a_claim_that_is_bound_at_once_steers_its_pod(real_server: Server) -> None:
    await real_server.load(*NODES, AT_ONCE, claim("c", "at-once"))
    async with in_process(real_server.kubeconfig):
        await real_server.load(claiming("p", "c"))
        await real_server.turned_away("p", unclaimed("pod has unbound immediate PersistentVolumeClaims"))
        await real_server.load(volume("vb", "at-once", "b"))
        assert await bound_to(real_server, "c") == "vb"
        assert await real_server.placed("p") == {"p": "nb"}


async def test_a_claim_for_one_pod_is_free_once_that_pod_is_gone(real_server: Server) -> None:
    one_pod = ("ReadWriteOncePod",)
    await real_server.load(*NODES, WAITS, volume("va", "waits", "a", modes=one_pod), claim("c", "waits", modes=one_pod))
    await available(real_server, "va")
    async with in_process(real_server.kubeconfig):
        await real_server.load(claiming("first", "c"))
        assert await real_server.placed("first") == {"first": "na"}
        assert await bound_to(real_server, "c") == "va"
        await real_server.load(claiming("second", "c"))
        await real_server.turned_away("second", unfit(2, f"2 {CLAIM_REASON}"))
        await real_server.delete("Pod", "first")
        assert await real_server.placed("second") == {"second": "na"}


async def test_a_claim_that_comes_later_wakes_its_pod(real_server: Server) -> None:
    await real_server.load(*NODES, WAITS, volume("va", "waits", "a"))
    await available(real_server, "va")
    async with in_process(real_server.kubeconfig):
        await real_server.load(claiming("p", "c"))
        await real_server.turned_away("p", unclaimed('persistentvolumeclaim "c" not found'))
        await real_server.load(claim("c", "waits"))
        assert await real_server.placed("p") == {"p": "na"}
        assert await bound_to(real_server, "c") == "va"


async def test_a_binding_that_takes_too_long_frees_what_was_taken(
    real_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 2}}]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": NAME, "pluginConfig": arguments}],
    }

    def impatient(name: str, *, release: Release) -> Profile:
        return configured_profiles(config, release=release)[name]

    monkeypatch.setattr(process, "default_profile", impatient)
    nobody = storage_class("nobody", "WaitForFirstConsumer", "nobody.example.com")
    await real_server.load(NODES[0], nobody, claim("c", "nobody"))
    async with in_process(real_server.kubeconfig):
        await real_server.load(claiming("p", "c", requests={"cpu": "3"}))
        await until(
            lambda: real_server.get("PersistentVolumeClaim", "c"),
            lambda one: one["metadata"].get("annotations", {}).get(SELECTED) == "na",
        )
        await asyncio.sleep(0.2)
        await real_server.load(pod("next", requests={"cpu": "3"}))
        message = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
        assert (await real_server.turned_away("p", message))["reason"] == "SchedulerError"
        assert await real_server.placed("next") == {"next": "na"}
