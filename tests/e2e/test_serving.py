"""The secure port of a running scheduler: health while it starts and stops, and who may read what."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from policysched.sandbox import Sandbox
from tests.app.serving.ports import free_port
from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import NAME, node, only
from tests.e2e.schedulers import Spawned, spawned
from tests.e2e.server import Server
from tests.e2e.test_permissions import POLICIES, SCHEDULING
from tests.e2e.waiting import until

RBAC = "rbac.authorization.k8s.io/v1"
ALL_OPEN = "--authorization-always-allow-paths=/*"
OWN_PATHS = ("/metrics", "/metrics/resources", "/configz", "/debug/policies", "/what")
ALL_PATHS = ("/healthz", "/livez", "/readyz", "/readyz/ping", *OWN_PATHS)


class Port:
    """The port of a scheduler."""

    def __init__(self, number: int) -> None:
        self.number = number

    async def get(self, path: str, token: str = "", method: str = "GET", **more: Any) -> tuple[int, str]:
        """Make a request; a status of 0 is no answer."""
        headers = ({"Authorization": f"Bearer {token}"} if token else {}) | more.pop("headers", {})
        url = f"https://127.0.0.1:{self.number}{path}"
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.request(method, url, headers=headers, ssl=more.pop("tls", False), **more) as answer,
            ):
                return answer.status, await answer.text()
        except aiohttp.ClientConnectionError as error:
            return 0, str(error)

    async def says(self, path: str, code: int) -> str:
        """Wait until a path answers so."""
        return (await until(lambda: self.get(path), lambda answer: answer[0] == code))[1]


@asynccontextmanager
async def serving(kubeconfig: Path | None, *flags: str, wait: bool = True) -> AsyncIterator[tuple[Spawned, Port]]:
    """Run a scheduler with a port of its own."""
    port = Port(free_port())
    own = [f"--secure-port={port.number}", "--bind-address=127.0.0.1", "--leader-elect=false"]
    own += [f"--kubeconfig={kubeconfig}"] if kubeconfig is not None else []
    async with spawned(*own, *flags, wait=wait) as scheduler:
        if wait:
            await port.says("/readyz", 200)
        yield scheduler, port


async def test_health_is_told_by_checks(server: Server) -> None:
    async with serving(server.kubeconfig) as (_, port):
        assert await port.get("/healthz") == (200, "ok")
        assert (await port.get("/readyz?verbose"))[1] == (
            "[+]ping ok\n[+]informer-sync ok\n[+]policies-sync ok\n[+]shutdown ok\nreadyz check passed\n"
        )
        assert (await port.get("/livez?verbose"))[1] == "[+]ping ok\n[+]event-loop ok\nlivez check passed\n"
        code, text = await port.get("/healthz", method="POST")
        assert (code, json.loads(text)["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("flags", "address", "hints"),
    [([], "127.0.0.1", 1), (["--bind-address=0.0.0.0", "--v=2"], "0.0.0.0", 0)],  # noqa: S104
)
async def test_port_is_on_loopback_as_the_server_and_the_log_names_the_level_of_placements(
    server: Server, flags: list[str], address: str, hints: int
) -> None:
    own = [f"--secure-port={free_port()}", "--leader-elect=false", f"--kubeconfig={server.kubeconfig}"]
    async with spawned(*own, *flags) as scheduler:
        [line] = await scheduler.said("serving on secure port")
        assert f"https://{address}:" in line
    assert len(scheduler.saying("placed pods are logged at --v=2 and above")) == hints
    assert len(scheduler.saying("decisions follow Kubernetes v1.")) == 1
    assert not scheduler.saying("WARNING"), "the release is that of the server"


async def test_scheduler_without_a_server_lives_and_is_not_ready(server: Server, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.write_text(server.kubeconfig.read_text("utf-8").replace(server.url, f"https://127.0.0.1:{free_port()}"))
    async with serving(gone, wait=False) as (_, port):
        await port.says("/livez", 200)
        failed = "[-]informer-sync failed: reason withheld\n[-]policies-sync failed: reason withheld"
        assert await port.get("/readyz") == (500, f"[+]ping ok\n{failed}\n[+]shutdown ok\nreadyz check failed\n")


async def test_configuration_is_shown_without_secrets(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(server.kubeconfig), "qps": 100},
        "profiles": [{"schedulerName": NAME}],
        "extenders": [{"urlPrefix": "http://me:secret@127.0.0.1:9", "filterVerb": "filter", "ignorable": True}],
    }
    file.write_text(yaml.safe_dump(config))
    async with serving(None, f"--config={file}", ALL_OPEN) as (_, port):
        code, text = await port.get("/configz")
    shown = json.loads(text)["componentconfig"]
    assert (code, shown["kind"], shown["clientConnection"]["qps"]) == (200, "KubeSchedulerConfiguration", 100)
    assert [one["schedulerName"] for one in shown["profiles"]] == [NAME]
    assert "127.0.0.1:9" in text
    assert "secret" not in text


async def test_policies_are_shown_as_they_act(server: Server) -> None:
    await server.load(node("n1"), only("pin", "n1"))
    async with serving(server.kubeconfig, ALL_OPEN) as (_, port):
        await server.patch("SchedulingPolicy", "pin", {"spec": {"filters": [{"name": "broken", "require": "1 +"}]}})
        await server.policy_says("pin", 2, Compiled="SyntaxError")
        shown = json.loads((await port.get("/debug/policies"))[1])
        [told] = shown["policies"]
        assert (told["name"], told["generation"], told["activeGeneration"]) == ("pin", 2, 1)
        assert told["cost"] > 0
        assert [one.split(":")[0] for one in told["errors"]] == ["spec.filters[0].require"]
        [profile] = shown["profiles"]
        assert profile["filters"][-1] == "SchedulingPolicy/pin"
        assert {"name": "TaintToleration", "weight": 3} in profile["scores"]


async def test_requests_that_no_path_takes_are_refused_and_the_process_stays_up(
    server: Server, sandbox: Sandbox
) -> None:
    """Each path with methods, bodies and headers that it does not take; all are let in, so none is hidden by a 403."""
    known = [path for path in ALL_PATHS if path != "/what"]
    async with serving(server.kubeconfig, ALL_OPEN) as (scheduler, port):
        for path in known:
            assert (await port.get(path))[0] == 200, path
            for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                code, text = await port.get(path, method=method)
                assert (code, json.loads(text)["reason"]) == (405, "MethodNotAllowed"), (method, path)
            assert (await port.get(path, method="NONSENSE"))[0] == 400, path
            assert (await port.get(path, data=b"x" * 1_000_000))[0] in {200, 413}, path
            assert (await port.get(path, headers={"X-Long": "x" * 20_000}))[0] in {400, 431}, path
        for path in ("/what", "/readyz/what", "/debug", "/debug/policies/", "/metrics/other", "/%00"):
            assert (await port.get(path))[0] in {400, 404}, path
        assert (await port.get("/readyz"))[0] == 200
        assert not scheduler.saying("ERROR")


@pytest.mark.controlplane
async def test_service_account_reads_what_its_role_says(real_server: Server, control_plane: ControlPlane) -> None:
    tokens = {name: await make_account(real_server, control_plane, name) for name in ("may-read", "may-not")}
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "reads-metrics"}}
    rules = [{"nonResourceURLs": ["/metrics", "/readyz/*"], "verbs": ["get"]}]
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": "may-read"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads-metrics"}
    binding = role | {"kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": reference}
    control_plane.kubectl("apply", "-f", "-", stdin=[role | {"rules": rules}, binding])
    async with serving(real_server.kubeconfig) as (_, port):

        async def codes(token: str = "") -> dict[str, int]:
            return {path: (await port.get(path, token))[0] for path in ALL_PATHS}

        health = dict.fromkeys(("/healthz", "/livez", "/readyz"), 200)
        refused = dict.fromkeys(ALL_PATHS, 403) | health
        assert await codes() == refused
        assert await codes(tokens["may-not"]) == refused
        for wrong in ("wrong", "x" * 8_000, tokens["may-read"][:-2]):
            assert await codes(wrong) == dict.fromkeys(ALL_PATHS, 401)
        for odd in ("Basic bWU6c2VjcmV0", "Bearer", "nonsense"):
            assert (await port.get("/metrics", headers={"Authorization": odd}))[0] == 403, odd
        for method in ("POST", "PUT", "DELETE"):
            assert (await port.get("/metrics", method=method))[0] == 403, "who may not learns nothing of what it takes"
        allowed = refused | {"/metrics": 200, "/readyz/ping": 200}
        await until(lambda: codes(tokens["may-read"]), lambda found: found == allowed)
        code, text = await port.get("/metrics", tokens["may-not"])
        user = "system:serviceaccount:default:may-not"
        assert (code, json.loads(text)) == (
            403,
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": f'forbidden: User "{user}" cannot get path "/metrics"',
                "reason": "Forbidden",
                "details": {},
                "code": 403,
            },
        )


@pytest.mark.controlplane
async def test_client_certificate_of_the_given_authority_says_who_asks(
    real_server: Server, control_plane: ControlPlane
) -> None:
    authority = control_plane.identities.authority
    async with serving(real_server.kubeconfig, f"--client-ca-file={authority.certificate}") as (_, port):

        async def get(user: str, *groups: str) -> int:
            tls = ssl.create_default_context()
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
            tls.load_cert_chain(*authority.client(user, groups))
            return (await port.get("/metrics", tls=tls))[0]

        assert await get("jane") == 403
        assert await get("root", "system:masters") == 200


@pytest.mark.controlplane
async def test_scheduler_without_the_right_to_review_lets_nobody_in_and_says_so_once(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path
) -> None:
    control_plane.allow("scheduler", *SCHEDULING, *POLICIES)
    config = control_plane.token_kubeconfig(tmp_path / "config", "scheduler")
    token = control_plane.identities.token()
    async with serving(config) as (scheduler, port):
        for _ in range(2):
            assert (await port.get("/metrics"))[0] == 403
            assert (await port.get("/metrics", token))[0] == 401
            assert (await port.get("/livez"))[0] == 200
        await scheduler.said("SubjectAccessReview failed, ")
    assert len(scheduler.saying("Review failed, requests ")) == 2


async def make_account(server: Server, plane: ControlPlane, name: str) -> str:
    """Make a service account and give a token of it."""
    plane.kubectl(
        "apply", "-f", "-", stdin=[{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}]
    )
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    made = await server.call("POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token", request)
    token: str = made["status"]["token"]
    return token
