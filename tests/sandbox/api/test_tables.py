from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from policysched.sandbox import Sandbox, sandbox_nodes
from policysched.sandbox.api.tables import human, since
from tests.sandbox.bodies import DEFINITION, PODS, POLICIES, deployment, pod, policy

if TYPE_CHECKING:
    from tests.sandbox.conftest import Api, Clock

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


async def rows(api: Api, path: str, **query: str) -> list[dict[str, Any]]:
    async with api.session.get(api.url + path, headers=TABLE, params=query) as response:
        found = await response.json(content_type=None)
    titles = [column["name"] for column in found["columnDefinitions"]]
    return [dict(zip(titles, row["cells"], strict=True)) for row in found["rows"]]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (601, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 120, "3h2m"),
        (9 * 3600 + 120, "9h"),
        (50 * 3600, "2d2h"),
        (20 * 86400, "20d"),
        (3 * 365 * 86400 + 86400, "3y1d"),
        (9 * 365 * 86400 + 86400, "9y"),
    ],
)
def test_ages_are_short(seconds: int, text: str) -> None:
    assert human(seconds) == text


def test_an_age_of_nothing_is_unknown() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert since(None, now) == "<unknown>"
    assert since((now - timedelta(minutes=3)).isoformat(), now) == "3m"


async def test_pod_rows_say_what_state_a_pod_is_in(quiet_api: Api, clock: Clock) -> None:
    await quiet_api.post(PODS, pod("gated", schedulingGates=[{"name": "g"}]))
    await quiet_api.post(PODS, pod("going", nodeName="n", readinessGates=[{"conditionType": "x"}]))
    await quiet_api.delete(f"{PODS}/going")
    await quiet_api.post(PODS, pod("broken"))
    waiting = {"name": "c", "state": {"waiting": {"reason": "ErrImagePull"}}, "restartCount": 2}
    await quiet_api.merge(f"{PODS}/broken/status", {"status": {"containerStatuses": [waiting]}})
    clock.forward(300)
    found = {row["Name"]: row for row in await rows(quiet_api, PODS)}
    assert {name: row["Status"] for name, row in found.items()} == {
        "gated": "SchedulingGated",
        "going": "Terminating",
        "broken": "ErrImagePull",
    }
    assert (found["broken"]["Ready"], found["broken"]["Restarts"]) == ("0/1", "2")
    assert found["going"]["Age"].startswith("5m")
    assert (found["going"]["Node"], found["going"]["Readiness Gates"]) == ("n", "0/1")


async def test_node_rows_say_roles_and_state(quiet_api: Api, quiet: Sandbox) -> None:
    nodes = sandbox_nodes(3)
    nodes[0]["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = ""
    nodes[1]["spec"]["unschedulable"] = True
    nodes[2]["status"]["conditions"][-1]["status"] = "False"
    quiet.load(nodes)
    found = await rows(quiet_api, "/api/v1/nodes")
    assert [(row["Status"], row["Roles"]) for row in found] == [
        ("Ready", "control-plane"),
        ("Ready,SchedulingDisabled", "<none>"),
        ("NotReady", "<none>"),
    ]


async def test_rows_of_other_kinds_show_their_columns(quiet_api: Api, quiet: Sandbox) -> None:
    quiet.load([deployment("d", 2)])
    (row,) = await rows(quiet_api, "/apis/apps/v1/deployments")
    assert (row["Ready"], row["Images"], row["Selector"]) == ("0/2", "nginx:1", "app=d")
    (row,) = await rows(quiet_api, "/api/v1/services")
    assert (row["Name"], row["Type"], row["Port(s)"]) == ("kubernetes", "ClusterIP", "443/TCP")
    values = [row["Value"] for row in await rows(quiet_api, "/apis/scheduling.k8s.io/v1/priorityclasses")]
    assert values == [2_000_000_000, 2_000_001_000]
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    made = {"metadata": {"name": "v"}, "spec": volume | {"claimRef": {"namespace": "a", "name": "b"}}}
    await quiet_api.post("/api/v1/persistentvolumes", made)
    (row,) = await rows(quiet_api, "/api/v1/persistentvolumes")
    assert (row["Capacity"], row["Access Modes"], row["Claim"]) == ("1Gi", "RWO", "a/b")
    await quiet_api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "a:b"}})
    (row,) = await rows(quiet_api, "/apis/rbac.authorization.k8s.io/v1/clusterroles")
    assert list(row) == ["Name", "Created At"]


async def test_printer_columns_follow_their_paths(quiet_api: Api, quiet: Sandbox) -> None:
    quiet.load([DEFINITION])
    await quiet_api.post(POLICIES, policy(mode="Shadow", weight=5))
    (row,) = await rows(quiet_api, POLICIES)
    said = {"Rules": None, "Compiled": None, "Active": None}
    assert row == {"Name": "p", "Mode": "Shadow", "Weight": 5, **said, "Age": "0s", "Error": None}
    conditions = [{"type": "Compiled", "status": "False"}, {"type": "Active", "status": "True"}]
    await quiet_api.merge(f"{POLICIES}/p/status", {"status": {"conditions": conditions}})
    (row,) = await rows(quiet_api, POLICIES)
    assert row["Active"] == "True"


async def test_rows_carry_what_the_request_wants(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("web"))
    for include, expected in (("", "PartialObjectMetadata"), ("Object", "Pod"), ("None", None)):
        async with quiet_api.session.get(
            quiet_api.url + f"{PODS}/web", headers=TABLE, params={"includeObject": include} if include else {}
        ) as response:
            (row,) = (await response.json(content_type=None))["rows"]
        assert (row["object"] or {}).get("kind") == expected


BASE = "/api/v1/namespaces/default"
_ADDRESSES = [{"ip": f"10.0.0.{n}"} for n in range(5)]
_TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"nodeSelector": {"x": "y"}, "containers": [{"name": "c", "image": "i"}]},
}
_ABOUT = {"kind": "Pod", "name": "w", "namespace": "default"}
_DEFAULT = {"name": "x", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}


@pytest.mark.parametrize(
    ("path", "body", "cells"),
    [
        (
            f"{BASE}/endpoints",
            {"subsets": [{"addresses": _ADDRESSES, "ports": [{"port": 80}]}]},
            {"Endpoints": "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more..."},
        ),
        (
            f"{BASE}/persistentvolumeclaims",
            {"spec": {"accessModes": ["ReadWriteMany"]}},
            {"Status": "Pending", "VolumeMode": "Filesystem"},
        ),
        (f"{BASE}/secrets", {"data": {"a": "eA=="}}, {"Type": "Opaque", "Data": 1}),
        (
            f"{BASE}/events",
            {"involvedObject": _ABOUT, "message": " m "},
            {"Object": "pod/w", "Message": "m", "Last Seen": "<unknown>"},
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            {"provisioner": "p", "metadata": _DEFAULT},
            {"Name": "x (default)", "VolumeBindingMode": "Immediate"},
        ),
        ("/apis/storage.k8s.io/v1/csinodes", {"spec": {"drivers": []}}, {"Drivers": 0}),
        (
            "/apis/apps/v1/namespaces/default/daemonsets",
            {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}},
            {"Node Selector": "x=y", "Desired": 0},
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {"spec": {"minAvailable": 1}},
            {"Min Available": 1, "Max Unavailable": "N/A", "Allowed Disruptions": 0},
        ),
    ],
)
async def test_more_kinds_show_their_columns(
    quiet_api: Api, path: str, body: dict[str, Any], cells: dict[str, Any]
) -> None:
    code, _ = await quiet_api.post(path, {"metadata": {"name": "x"}} | body)
    assert code == 201
    (row,) = await rows(quiet_api, path)
    assert {name: row[name] for name in cells} == cells
