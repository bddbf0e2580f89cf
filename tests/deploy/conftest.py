from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane.plane import ControlPlane
from tests.deploy.audit import LOG, Json, audit_flags, events
from tests.e2e.real import RealServer

ACCOUNT = "system:serviceaccount:kube-system:policysched"
OF_STATIC_POD = "system:kube-scheduler"


@dataclass(frozen=True)
class Audited:
    """A control plane that logs what the scheduler's users ask for."""

    plane: ControlPlane
    folder: Path

    def events(self, user: str) -> list[Json]:
        """Give what was logged of a user so far."""
        return [event for event in events(self.folder / LOG) if event["user"]["username"] == user]


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """A control plane of its own, for the tests of what is deployed."""
    folder = tmp_path_factory.mktemp("audit")
    with ControlPlane(apiserver_flags=audit_flags(folder, ACCOUNT, OF_STATIC_POD)) as plane:
        yield Audited(plane, folder)


@pytest.fixture
async def cluster(audited: Audited) -> AsyncIterator[RealServer]:
    """That control plane without anything in it, not even our definition."""
    plane = audited.plane
    plane.wipe()
    headers = {"Authorization": f"Bearer {plane.identities.token()}"}
    async with RealServer(plane.url, plane.kubeconfig(), headers, plane.identities.tls(), plane=plane) as made:
        yield made
