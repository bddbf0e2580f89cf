"""The objects for Prometheus Operator, taken by a real API server that has the operator's definitions."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.deploy.definitions import definition
from tests.deploy.rendering import Json, of_kind
from tests.deploy.test_kustomize import composed
from tests.e2e.real import RealServer

pytestmark = pytest.mark.controlplane
PLURALS = {"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"}
STRICT = ("create", "--dry-run=server", "--validate=strict", "-f", "-")


async def kubectl(server: RealServer, *arguments: str, stdin: list[Json], code: int = 0) -> str:
    assert server.plane is not None
    return await asyncio.to_thread(partial(server.plane.kubectl, *arguments, stdin=stdin, code=code))


async def test_operator_takes_our_objects_and_not_one_with_a_field_that_it_does_not_know(
    cluster: RealServer, tmp_path: Path
) -> None:
    objects = composed(tmp_path, "service-monitor", "alerts")
    ours = {kind: of_kind(objects, kind) for kind in PLURALS}
    assert all(ours.values())
    definitions = [definition(plural) for plural in PLURALS.values()]
    names = [f"crd/{one['metadata']['name']}" for one in definitions]
    await kubectl(cluster, "create", "-f", "-", stdin=definitions)
    try:
        assert cluster.plane is not None
        await asyncio.to_thread(cluster.plane.await_use, definitions)
        for several in ours.values():
            await kubectl(cluster, *STRICT, stdin=several)
        [monitor], [rule] = ours.values()
        misspelt = yaml.safe_load(yaml.safe_dump(monitor))
        misspelt["spec"]["endpoints"][0]["tlsconfig"] = {}
        assert "unknown field" in await kubectl(cluster, *STRICT, stdin=[misspelt], code=1)
        wrong = yaml.safe_load(yaml.safe_dump(rule))
        wrong["spec"]["groups"][0]["rules"][0]["for"] = "soon"
        assert "spec.groups[0].rules[0].for" in await kubectl(cluster, *STRICT, stdin=[wrong], code=1)
    finally:
        await kubectl(cluster, "delete", "--ignore-not-found", *names, stdin=[])
