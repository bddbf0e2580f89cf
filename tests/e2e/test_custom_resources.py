"""Plugins that wait for custom resources, also for those that are installed late or may not be read yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane.plane import ControlPlane
from tests.e2e.conftest import Kubectl
from tests.e2e.objects import node, pod, unfit
from tests.e2e.schedulers import in_process
from tests.e2e.server import MERGE, Server
from tests.e2e.test_permissions import POLICIES, SCHEDULING, rule

PLUGIN = """
from policysched.plugin import Action, CustomResource, Hint, unschedulable

FOOS = CustomResource("foos.v1.example.com")


class Gate:
    name = "gate"

    def __init__(self, args, handle):
        self.handle = handle

    def filter(self, state, pod, node):
        foos = self.handle.custom_objects(FOOS)
        if any(foo.content["spec"]["open"] for foo in foos.values()):
            return None
        return unschedulable(f"none of {len(foos)} foos is open")

    def events(self):
        return [Hint(FOOS, Action.ADD | Action.UPDATE)]
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "KUBECONFIG"}
profiles:
- schedulerName: policysched
  plugins:
    multiPoint:
      enabled:
      - name: gate
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Foo, plural: foos, singular: foo}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {open: {type: boolean}}
"""
FOO = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "door"}, "spec": {"open": False}}
FOOS = "/apis/example.com/v1/namespaces/default/foos"


class Files:
    """A configuration that enables the plugin, and where that is."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        plugin, self.config = folder / "gate.py", folder / "scheduler-config.yaml"
        plugin.write_text(PLUGIN, "utf-8")
        self.config.write_text(CONFIG.replace("KUBECONFIG", str(kubeconfig)), "utf-8")
        self.plugins = (f"{plugin}:Gate",)


async def install(kubectl: Kubectl) -> None:
    await kubectl.run("apply", "-f", "-", stdin=DEFINITION)
    await kubectl.run("wait", "--for=condition=Established", "crd/foos.example.com")


@pytest.mark.kubectl
async def test_pod_is_tried_again_as_an_object_changes(server: Server, kubectl: Kubectl, tmp_path: Path) -> None:
    """The scheduler starts before the resource is installed."""
    await server.load(node("n1"), pod("web"))
    files = Files(tmp_path, server.kubeconfig)
    async with in_process(None, config=files.config, plugins=files.plugins) as scheduler:
        await scheduler.said("continuing without foos")
        await server.turned_away("web", unfit(1, "1 none of 0 foos is open", hopeless=0))
        await install(kubectl)
        await server.call("POST", FOOS, FOO)
        await server.turned_away("web", unfit(1, "1 none of 1 foos is open", hopeless=0))
        await server.call("PATCH", f"{FOOS}/door", {"spec": {"open": True}}, MERGE)
        assert await server.placed("web") == {"web": "n1"}


@pytest.mark.controlplane
async def test_resource_that_may_not_be_read_counts_as_empty_until_it_may(
    real_server: Server, control_plane: ControlPlane, kubectl_program: Path, tmp_path: Path
) -> None:
    control_plane.allow("scheduler", *SCHEDULING, *POLICIES)
    await install(Kubectl(kubectl_program, real_server.kubeconfig, tmp_path / "cache"))
    await real_server.load(node("n1"), pod("web"))
    await real_server.call("POST", FOOS, {**FOO, "spec": {"open": True}})
    files = Files(tmp_path, control_plane.token_kubeconfig(tmp_path / "config", "scheduler"))
    async with in_process(None, config=files.config, plugins=files.plugins) as scheduler:
        await scheduler.said("continuing without foos")
        control_plane.allow("scheduler", rule("example.com", "foos", "list", "watch"), name="foos")
        assert await real_server.placed("web") == {"web": "n1"}
