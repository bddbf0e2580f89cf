"""`helm rollback` to a release with an older definition: policies, and a definition that is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.deploy.operator_machine import Operator
from tests.e2e.objects import DEFINITION, Json, only
from tests.e2e.real import RealServer
from tests.e2e.test_api_versions import ALPHA, BETA, NAME, definition, path

pytestmark = pytest.mark.controlplane
INSTALL: Final = "helm install policysched dist/policysched --namespace kube-system"
UPGRADE: Final = "helm upgrade policysched dist/policysched --namespace kube-system --reset-then-reuse-values"
ROLLBACK: Final = "helm rollback policysched --namespace kube-system"
IMAGE: Final = "/apis/apps/v1/namespaces/kube-system/deployments/policysched"


def without_tier(made: Json) -> Json:
    """Return a definition of a release that did not know the field `tier`."""
    for version in made["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop("tier", None)  # versions share it
    return made


async def installed(operator: Operator, older: Json) -> None:
    """Install a release with an older definition, and upgrade it to this one."""
    crd = operator.folder / "crds" / "schedulingpolicies.yaml"
    now = crd.read_text("utf-8")
    crd.write_text(yaml.safe_dump(older), "utf-8")
    await operator.runs(f"make chart && {INSTALL} --set image.tag=old")
    crd.write_text(now, "utf-8")
    await operator.runs(f"make chart && {UPGRADE} --set image.tag=new")


def tag_of(plane: ControlPlane) -> str:
    found: dict[str, Any] = plane.api.call("GET", IMAGE)
    [container] = found["spec"]["template"]["spec"]["containers"]
    return str(container["image"]).rpartition(":")[2]


async def test_policies_keep_newer_fields_that_nobody_overwrites(cluster: RealServer, tmp_path: Path) -> None:
    plane = cluster.plane
    assert plane is not None
    operator, api = Operator(plane, tmp_path), plane.api

    def tiers() -> list[int | None]:
        return [api.call("GET", path(BETA, name))["spec"].get("tier") for name in ("kept", "written")]

    await installed(operator, without_tier(definition(ALPHA, BETA, stored=BETA)))
    until(lambda: "tier" in str(api.get("CustomResourceDefinition", NAME)["spec"]), "the newer definition is there")
    for name in ("kept", "written"):
        until(lambda: api.answers(path(BETA)), "policies are served")
        await operator.runs(f"kubectl apply -f {_file(operator, only(name, 'n1', tier=3))}")
    assert tiers() == [3, 3]
    await operator.runs(ROLLBACK)
    assert tag_of(plane) == "old"
    until(lambda: tiers() == [None, None], "the older definition is served")
    await operator.runs("kubectl annotate schedulingpolicy written a=b")
    await operator.runs(UPGRADE)
    until(lambda: tiers() == [3, 0], "the newer definition is served again")


async def test_definition_without_the_stored_version_is_refused_and_all_else_is_rolled_back(
    cluster: RealServer, tmp_path: Path
) -> None:
    plane = cluster.plane
    assert plane is not None
    operator = Operator(plane, tmp_path)
    await installed(operator, definition(ALPHA, stored=ALPHA))
    with pytest.raises(AssertionError, match=r"storedVersions\[1\]"):
        await operator.runs(ROLLBACK)
    assert tag_of(plane) == "old"
    served = plane.api.get("CustomResourceDefinition", NAME)["spec"]["versions"]
    assert {one["name"] for one in served} == {one["name"] for one in DEFINITION["spec"]["versions"]}


def _file(operator: Operator, obj: Json) -> str:
    (operator.folder / "policy.yaml").write_text(yaml.safe_dump(obj), "utf-8")
    return "policy.yaml"
