"""The upgrade page's commands that migrate stored policies, followed on definitions of older and newer releases."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.controlplane.api import Api
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.deploy.operator_machine import Operator
from tests.e2e.objects import only
from tests.e2e.real import RealServer
from tests.e2e.test_api_versions import ALPHA, BETA, NAME, definition, of_version, path
from tools.documents.markdown import ROOT

pytestmark = pytest.mark.controlplane
UPGRADE = ROOT / "docs" / "run" / "upgrade.md"
POLICIES = ("applied", "by-server", "untouched")


def stored_versions(api: Api) -> list[str]:
    found: list[str] = api.get("CustomResourceDefinition", NAME)["status"]["storedVersions"]
    return found


def stored_as(plane: ControlPlane) -> list[str]:
    """Return the API version of each policy in etcd."""
    keys = (f"/registry/policysched.io/schedulingpolicies/{name}" for name in POLICIES)
    return [str(plane.etcd.value(key)["apiVersion"]).rpartition("/")[2] for key in keys]


def identities(api: Api, version: str) -> list[tuple[str, int, str]]:
    """Return name, generation and condition of each policy in a version."""
    items = api.call("GET", path(version))["items"]
    assert [one["apiVersion"] for one in items] == [f"policysched.io/{version}"] * len(items)
    return [(each["uid"], each["generation"], str(one["spec"])) for one in items for each in [one["metadata"]]]


def write(folder: Path, name: str, *objects: object) -> str:
    (folder / name).write_text(yaml.safe_dump_all(objects), "utf-8")
    return name


async def test_page_migrates_stored_policies_and_brings_them_back(cluster: RealServer, tmp_path: Path) -> None:
    plane = cluster.plane
    assert plane is not None
    operator, api = Operator(plane, tmp_path), plane.api
    old = write(operator.folder, "old.yaml", definition(ALPHA, stored=ALPHA))
    new = write(operator.folder, "new.yaml", definition(BETA, stored=BETA))
    alpha = {name: of_version(ALPHA, only(name, "n1")) for name in POLICIES}
    await operator.runs(f"kubectl apply -f {old}")
    until(lambda: api.answers(path(ALPHA)), "the old version is served")
    await operator.runs(f"kubectl apply -f {write(operator.folder, 'applied.yaml', alpha['applied'])}")
    server_side = write(operator.folder, "by-server.yaml", alpha["by-server"])
    await operator.runs(f"kubectl apply --server-side -f {server_side}")
    await operator.runs(f"kubectl create -f {write(operator.folder, 'untouched.yaml', alpha['untouched'])}")
    for name in POLICIES:  # as a scheduler of that version does
        status = """--subresource=status --type=merge -p '{"status":{"rules":1}}'"""
        await operator.runs(f"kubectl patch schedulingpolicy {name} {status}")
    before = identities(api, ALPHA)

    await operator.runs("kubectl apply -f crds/")
    until(lambda: api.answers(path(BETA)), "the new version is served")
    assert (stored_as(plane), stored_versions(api)) == ([ALPHA] * 3, [ALPHA, BETA])
    assert identities(api, BETA) == identities(api, ALPHA) == before
    with pytest.raises(AssertionError, match=r"storedVersions\[0\].* must appear in|missing from spec\.versions"):
        await operator.runs(f"kubectl apply -f {new}")

    await operator.follows("Migrate stored policies", UPGRADE)
    assert (stored_as(plane), stored_versions(api)) == ([BETA] * 3, [BETA])
    assert identities(api, ALPHA) == before
    await operator.runs(f"kubectl apply -f {new}")
    until(lambda: not api.answers(path(ALPHA)), "the old version is no longer served")
    assert identities(api, BETA) == before
    for name, flag in (("applied", ""), ("by-server", "--server-side")):
        file = write(operator.folder, f"{name}.yaml", of_version(BETA, only(name, "n2")))
        await operator.runs(f"kubectl apply {flag} -f {file}")
        assert '"n2"' in str(api.call("GET", path(BETA, name))["spec"])
    before = identities(api, BETA)

    await operator.runs("kubectl apply -f crds/")
    until(lambda: api.answers(path(ALPHA)), "the old version is served again")
    with pytest.raises(AssertionError, match="storedVersions"):
        await operator.runs(f"kubectl apply -f {old}")
    await operator.follows("Return to an older CRD", UPGRADE)
    assert (stored_as(plane), stored_versions(api)) == ([ALPHA] * 3, [ALPHA])
    await operator.runs(f"kubectl apply -f {old}")
    until(lambda: not api.answers(path(BETA)), "the new version is no longer served")
    assert identities(api, ALPHA) == before
    for name, flag in (("applied", ""), ("by-server", "--server-side")):
        file = write(operator.folder, f"{name}.yaml", of_version(ALPHA, only(name, "n3")))
        await operator.runs(f"kubectl apply {flag} -f {file}")
        assert '"n3"' in str(api.call("GET", path(ALPHA, name))["spec"])
