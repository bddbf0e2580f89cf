"""The validating webhook behind a real API server: what kubectl says, and what happens without it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.app.webhook import keeper
from policysched.app.webhook.keeper import CONFIGURATIONS, CertificatePlace
from policysched.app.webhook.serving import WebhookOptions, run_webhook
from policysched.framework import ApiError
from tests.app.serving.ports import free_port
from tests.controlplane.build import binary
from tests.e2e.objects import node, policy
from tests.e2e.schedulers import Spawned, spawned
from tests.e2e.server import Server
from tests.e2e.waiting import until
from tools.documents.markdown import ROOT

pytestmark = pytest.mark.controlplane
NAME = "policysched"
MANIFEST = (ROOT / "deploy" / "components" / "webhook" / "webhook.yaml").read_text("utf-8")
BROKEN = policy("broken", filters=[{"name": "cores", "require": 'node.labels["cores"] > 10'}])
HIDDEN = policy("hidden", filters=[{"name": "f", "require": 'node.name != "a\u200bb"'}])
GOOD = policy("good", filters=[{"name": "ready", "require": "node.ready"}])
FIRST_LINE = 'The SchedulingPolicy "{name}" is invalid: spec.filters[0].require: error[E0301]: cannot compare'
REFUSAL = f"""{FIRST_LINE} string with number
  --> spec.filters[0].require:1:1
   |
 1 | node.labels["cores"] > 10
   | ^^^^^^^^^^^^^^^^^^^^^^^^^
   = help: labels are strings; convert them with number(...)
"""
"""What kubectl prints."""


def configuration(port: int) -> dict[str, Any]:
    """Give the component's configuration, with a port on this machine in place of the service."""
    documents = yaml.safe_load_all(MANIFEST)
    [found] = [one for one in documents if one["kind"] == "ValidatingWebhookConfiguration"]
    made: dict[str, Any] = found
    made["webhooks"][0]["clientConfig"] = {"url": f"https://127.0.0.1:{port}/validate"}
    return made


@asynccontextmanager
async def serving(server: Server, kubeconfig: Path) -> AsyncIterator[Spawned]:
    """Run the webhook, and wait until it said whom to trust."""
    port = free_port()
    await server.call("POST", CONFIGURATIONS, configuration(port))
    try:
        flags = [f"--secure-port={port}", "--bind-address=127.0.0.1", f"--kubeconfig={kubeconfig}"]
        async with spawned(*flags, wait=False, command="webhook") as process:
            await until(lambda: bundle_of(server), bool)
            yield process
    finally:
        await server.call("DELETE", f"{CONFIGURATIONS}/{NAME}")
        await server.call("DELETE", "/api/v1/namespaces/kube-system/secrets/policysched-webhook")


async def installed(server: Server, folder: Path) -> Path:
    """Apply the component but its configuration; return a kubeconfig with the rights of its ServiceAccount."""
    objects = [one for one in yaml.safe_load_all(MANIFEST) if one["kind"] != "ValidatingWebhookConfiguration"]
    said = await kubectl(server, "apply", of={"kind": "List", "apiVersion": "v1", "items": objects})
    assert all(line.endswith((" created", " unchanged")) for line in said.splitlines()), said
    assert len(said.splitlines()) == len(objects)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = "/api/v1/namespaces/kube-system/serviceaccounts/policysched-webhook/token"
    token = (await server.call("POST", path, request))["status"]["token"]
    config = yaml.safe_load(server.kubeconfig.read_text("utf-8"))
    config["users"] = [one | {"user": {"token": token}} for one in config["users"]]
    kubeconfig = folder / "webhook.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    return kubeconfig


async def bundle_of(server: Server) -> bytes:
    found = await server.call("GET", f"{CONFIGURATIONS}/{NAME}")
    return base64.b64decode(found["webhooks"][0]["clientConfig"].get("caBundle", ""))


async def kubectl(
    server: Server, *arguments: str, of: dict[str, Any], environment: Mapping[str, str] | None = None
) -> str:
    """Run kubectl on an object; return all that it says."""
    process = await asyncio.create_subprocess_exec(
        str(binary("kubectl")), f"--kubeconfig={server.kubeconfig}", *arguments, "-f", "-",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env=os.environ | (environment or {}),
    )  # fmt: skip
    said, _ = await process.communicate(json.dumps(of).encode())
    return said.decode()


async def test_kubectl_shows_what_is_wrong_and_lets_pass_without_the_webhook(
    real_server: Server, tmp_path: Path
) -> None:
    server = real_server
    async with serving(server, await installed(server, tmp_path)):
        said = await until(
            lambda: kubectl(server, "create", "--dry-run=server", of=BROKEN), lambda text: "is invalid" in text
        )
        assert said == REFUSAL.format(name="broken")
        assert "created" in await kubectl(server, "apply", of=GOOD)
        edited = {**GOOD, "spec": BROKEN["spec"]}
        assert await kubectl(server, "apply", of=edited) == REFUSAL.format(name="good")
        assert (await server.get("SchedulingPolicy", "good"))["spec"]["filters"][0]["name"] == "ready"
        said = await kubectl(server, "apply", of=HIDDEN)
        assert "Warning: W0706 spec.filters[0].require" in said
        assert "created" in said
    assert "created" in await kubectl(server, "apply", of=BROKEN)


async def test_editor_of_kubectl_shows_why_an_edit_was_refused(real_server: Server, tmp_path: Path) -> None:
    editor, seen = tmp_path / "editor", tmp_path / "seen"
    editor.write_text(f"""#!/bin/sh
if grep -q 'was not valid' "$1"; then cp "$1" {seen}; else sed -i 's/node.ready/nod.ready/' "$1"; fi
""")
    editor.chmod(0o755)
    async with serving(real_server, await installed(real_server, tmp_path)):
        await until(lambda: kubectl(real_server, "create", "--dry-run=server", of=BROKEN), lambda text: "E0301" in text)
        await real_server.load(GOOD)
        said = await kubectl(real_server, "edit", of=GOOD, environment={"KUBE_EDITOR": str(editor)})
    assert "Edit cancelled, no valid changes were saved" in said
    assert seen.read_text().count("nod.ready") == 2
    for line in (
        '# schedulingpolicies.policysched.io "good" was not valid:',
        "# * spec.filters[0].require: error[E0201]: unknown name `nod`",
        "#  1 | nod.ready",
        "#    | ^^^",
    ):
        assert line in seen.read_text().splitlines()


async def test_edit_that_passes_without_the_webhook_leaves_the_last_good_version_in_force(real_server: Server) -> None:
    server = real_server
    port = free_port()
    await server.load(node("n1"), GOOD)
    await server.call("POST", CONFIGURATIONS, configuration(port))
    try:
        async with spawned(f"--kubeconfig={server.kubeconfig}", "--leader-elect=false"):
            await server.policy_says("good", 1, Compiled="Compiled")
            assert "configured" in await kubectl(server, "apply", of={**GOOD, "spec": BROKEN["spec"]})
            await server.policy_says("good", 2, Compiled="TypeError", Active="LastGoodGeneration")
    finally:
        await server.call("DELETE", f"{CONFIGURATIONS}/{NAME}")


async def test_policies_are_refused_though_the_secret_is_deleted(
    real_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeper, "EVERY", 0.2)
    server, stop, port = real_server, asyncio.Event(), free_port()
    place = CertificatePlace("kube-system", "policysched-webhook", "policysched-webhook", NAME)
    options = WebhookOptions(place, port, "127.0.0.1", kubeconfig=await installed(server, tmp_path))
    secret = "/api/v1/namespaces/kube-system/secrets/policysched-webhook"  # noqa: S105 - a path
    await server.call("POST", CONFIGURATIONS, configuration(port))
    running = asyncio.create_task(run_webhook(options, stop))
    try:
        await until(lambda: bundle_of(server), bool)
        await server.call("DELETE", secret)
        await server.call("DELETE", f"{CONFIGURATIONS}/{NAME}")
        await server.call("POST", CONFIGURATIONS, configuration(port))
        await until(lambda: bundle_of(server), bool)
        await until(lambda: kubectl(server, "create", "--dry-run=server", of=BROKEN), lambda text: "is invalid" in text)
        assert "run `kubectl -n kube-system create secret generic policysched-webhook`" in caplog.text
        stop.set()
        await running
        with pytest.raises(ApiError, match="run `kubectl -n kube-system create secret generic policysched-webhook`"):
            await run_webhook(options, stop)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.call("DELETE", f"{CONFIGURATIONS}/{NAME}")


ANYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
SELECTED = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
OWNED = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "7"}
CHANGES: dict[str, dict[str, Any]] = {
    "rules": {"rules": [ANYTHING]},
    "address": {"clientConfig": {"url": "https://127.0.0.1:1/other"}},
    "name": {"name": "other.policysched.io"},
    "failure policy": {"failurePolicy": "Fail"},
    "match policy": {"matchPolicy": "Exact"},
    "namespaces": {"namespaceSelector": SELECTED},
    "objects": {"objectSelector": SELECTED},
    "conditions": {"matchConditions": [{"name": "never", "expression": "false"}]},
    "side effects": {"sideEffects": "NoneOnDryRun"},
    "timeout": {"timeoutSeconds": 30},
    "versions": {"admissionReviewVersions": ["v1", "v1beta1"]},
}
"""What is changed of its webhook by who has the account's token."""


async def test_account_of_the_webhook_changes_the_bundle_of_its_configuration_and_nothing_else(
    real_server: Server, tmp_path: Path
) -> None:
    server = real_server
    kubeconfig = await installed(server, tmp_path)
    path = f"{CONFIGURATIONS}/{NAME}"
    async with (
        serving(server, kubeconfig),
        Server(server.url, kubeconfig, bearer_of(kubeconfig), server.tls) as own,
    ):

        async def refused(by: Server, change: dict[str, Any]) -> str:
            return await put(by, path, merged(await server.call("GET", path), change))

        await until(lambda: refused(own, {"webhooks": [CHANGES["rules"]]}), lambda said: "nothing else" in said)
        metadata = {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["a/b"], "ownerReferences": [OWNED]}
        tried: list[dict[str, Any]] = [{"webhooks": [change]} for change in CHANGES.values()]
        tried += [{"metadata": {name: value}} for name, value in metadata.items()]
        tried += [{"webhooks": []}, {"webhooks": [{}, {"name": "second.policysched.io", "rules": [ANYTHING]}]}]
        for change in tried:
            said = await refused(own, change)
            assert "may change the caBundle of its webhooks and nothing else" in said, (change, said)
        bundle = base64.b64encode(2 * await bundle_of(server)).decode()
        assert await refused(own, {"webhooks": [{"clientConfig": {"caBundle": bundle}}]}) == ""
        assert await refused(server, {"webhooks": [CHANGES["timeout"]]}) == "", "administrators change what they like"


def bearer_of(kubeconfig: Path) -> dict[str, str]:
    [user] = yaml.safe_load(kubeconfig.read_text("utf-8"))["users"]
    return {"Authorization": f"Bearer {user['user']['token']}"}


def merged(found: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Change a configuration; its webhooks are those of the change, each with what the first one has besides."""
    [first] = found["webhooks"]
    made = {**found, "metadata": found["metadata"] | change.get("metadata", {})}
    if "webhooks" in change:
        made["webhooks"] = [
            first | one | {"clientConfig": first["clientConfig"] | one.get("clientConfig", {})}
            for one in change["webhooks"]
        ]
    return made


async def put(server: Server, path: str, body: dict[str, Any]) -> str:
    """Replace an object; return why that was refused."""
    async with server.session.put(f"{server.url}{path}", json=body) as answer:
        return "" if answer.ok else await answer.text()
