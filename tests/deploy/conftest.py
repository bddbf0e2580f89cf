from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane.api import RefusedError
from tests.controlplane.build import binary
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.deploy.audit import LOG, Json, audit_flags, events
from tests.e2e.real import RealServer

ACCOUNT = "system:serviceaccount:kube-system:policysched"
OF_STATIC_POD = "system:kube-scheduler"
READER = "system:serviceaccount:default:policysched-reader"
INSTALLED = (
    *(
        "Deployment",
        "ReplicaSet",
        "Pod",
        "Service",
        "ServiceAccount",
        "ConfigMap",
        "Secret",
        "PodDisruptionBudget",
        "NetworkPolicy",
    ),
    *("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Lease", "CustomResourceDefinition"),
)
"""The kinds of all that an installation makes, owners first."""


@dataclass(frozen=True)
class Audited:
    """A control plane that logs the requests of the scheduler's users and of a reader."""

    plane: ControlPlane
    folder: Path

    def events(self, user: str) -> list[Json]:
        """Give what was logged of a user so far."""
        return [event for event in events(self.folder / LOG) if event["user"]["username"] == user]


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """A control plane of its own, for the tests of what is deployed."""
    folder = tmp_path_factory.mktemp("audit")
    with ControlPlane(apiserver_flags=audit_flags(folder, ACCOUNT, OF_STATIC_POD, READER)) as plane:
        yield Audited(plane, folder)


def installed_objects(plane: ControlPlane) -> list[tuple[str, str, str]]:
    """Give kind, name and namespace of whatever an installation has made, or of what is left of one."""
    found = [(kind, obj["metadata"]) for kind in INSTALLED for obj in plane.objects(kind)]
    return [
        (kind, of["name"], of.get("namespace", ""))
        for kind, of in found
        if re.search(r"polic(ysched|y-authors)", of["name"])
    ]


def _remove(plane: ControlPlane) -> bool:
    left = installed_objects(plane)
    for kind, name, namespace in left:
        with suppress(RefusedError):
            plane.api.delete(kind, name, namespace)
    return not left


@pytest.fixture
async def cluster(audited: Audited) -> AsyncIterator[RealServer]:
    """That control plane without anything in it, not even our definition."""
    plane = audited.plane
    plane.wipe()
    until(lambda: _remove(plane), "nothing is installed")
    with suppress(RefusedError):
        plane.api.delete("Lease", "kube-scheduler", "kube-system")
    headers = {"Authorization": f"Bearer {plane.identities.token()}"}
    async with RealServer(plane.url, plane.kubeconfig(), headers, plane.identities.tls(), plane=plane) as made:
        yield made


@pytest.fixture
def kube_scheduler(audited: Audited) -> Iterator[None]:
    """A stock kube-scheduler at work."""
    plane = audited.plane
    flags = (f"--kubeconfig={plane.kubeconfig()}", "--leader-elect=false", "--secure-port=0")
    program = plane.start("kube-scheduler", [binary("kube-scheduler"), *flags])
    yield
    program.stop()
