"""The pods of `deploy/` under Pod Security admission, as an API server applies it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.rendering import DEPLOY, kustomized, one, static_pod
from tests.deploy.test_chart import released
from tests.e2e.real import RealServer

pytestmark = pytest.mark.controlplane
STRICT = "strict"


async def refusal(server: RealServer, spec: dict[str, Any]) -> str:
    """Say why a namespace of the level `restricted` refuses a pod; empty where it does not."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", "namespace": STRICT}}
    plain = {key: value for key, value in spec.items() if key not in {"serviceAccountName", "priorityClassName"}}
    path = f"/api/v1/namespaces/{STRICT}/pods?dryRun=All"
    try:
        await server.call("POST", path, pod | {"spec": plain})
    except AssertionError as error:
        return str(error)
    return ""


async def test_pods_pass_where_pods_are_restricted(cluster: RealServer, tmp_path: Path) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STRICT, "labels": labels}})
    objects = await asyncio.to_thread(kustomized, DEPLOY / "beside")
    template = one(objects, "Deployment")["spec"]["template"]["spec"]
    assert await refusal(cluster, template) == ""
    documents = yaml.safe_load_all((DEPLOY / "components" / "webhook" / "webhook.yaml").read_text("utf-8"))
    assert await refusal(cluster, one(list(documents), "Deployment")["spec"]["template"]["spec"]) == ""
    hook = next(obj for obj in await asyncio.to_thread(released, tmp_path) if obj["kind"] == "Pod")
    assert await refusal(cluster, hook["spec"]) == ""
    assert "violates PodSecurity" in await refusal(cluster, static_pod()["spec"]), "the host's network is refused"
