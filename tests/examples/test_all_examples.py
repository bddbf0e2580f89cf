from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from policysched import check
from policysched.app.configuration.profiles import configured_profiles
from policysched.app.demo.sandbox_setup import written_kubeconfig
from policysched.app.plugins.discovery import find_plugins
from policysched.reading.loading import load
from tests.controlplane.build import binary
from tests.examples.playing import EXAMPLES, playing

STORIES = sorted(str(one.parent.relative_to(EXAMPLES)) for one in EXAMPLES.glob("tour/*/README.md"))
"""The examples that are a story of their own; the others are the cookbook's."""
PLUGINS = {
    "tour/01-tonodename": "tonodename.py:ToNodeName",
    "tour/02-node-label-filter": "sample_plugin.py:SamplePlugin",
    "tour/03-namescore": "namescore.py:NameScore",
    "tour/06-multipoint-communicating": "multipoint.py:MultipointCommunicating",
    "tour/07-node-filter": "node_filter.py:NodeFilter",
    "tour/08-beside-kube-scheduler": "example.py:Example",
}
"""The examples that are plugins, too, or nothing else."""
FOLDERS = [name for name in STORIES if (EXAMPLES / name / "policy.yaml").is_file()]
WORKLOADS = {"tour/01-tonodename": "deployment.yaml", "tour/03-namescore": "pod.yaml"}
"""What they show the policy on, where it is not pods.yaml."""
PROFILES = {
    "tour/01-tonodename": "sample-scheduler",
    "tour/02-node-label-filter": "default-scheduler",
    "tour/03-namescore": "namescore-scheduler",
    "tour/04-gpu-models": "policysched",
    "tour/05-load-aware": "policysched",
    "tour/09-devices": "policysched",
    "tour/11-gang-in-a-rack": "policysched",
}


def test_every_example_is_listed_here() -> None:
    assert sorted(PROFILES) == FOLDERS
    assert sorted({*PROFILES, *PLUGINS, "tour/10-record"}) == STORIES


@pytest.mark.parametrize(("example", "plugin"), PLUGINS.items())
def test_every_plugin_is_enabled_by_its_configuration(example: str, plugin: str) -> None:
    known = find_plugins([f"{EXAMPLES / example}/{plugin}"]).registry
    [name] = [one for one in known if known[one].origin.startswith("--plugin")]
    [profile] = configured_profiles((EXAMPLES / example / "scheduler-config.yaml").read_text("utf-8"), known).values()
    assert name in profile.plugin_names
    assert f"--plugin examples/{example}/{plugin}" in (EXAMPLES / example / "README.md").read_text("utf-8")


@pytest.mark.parametrize("example", FOLDERS)
def test_every_example_has_a_readme_a_policy_and_a_cluster(example: str) -> None:
    for name in ("README.md", "policy.yaml", "cluster.yaml", WORKLOADS.get(example, "pods.yaml")):
        assert (EXAMPLES / example / name).is_file()


@pytest.mark.parametrize("example", FOLDERS)
def test_every_policy_compiles_without_a_warning(example: str) -> None:
    policies = [one.object for one in load([str(EXAMPLES / example / "policy.yaml")])]
    assert policies
    assert check(policies) == []


async def _kubectl(kubeconfig: Path, *arguments: str) -> str:
    program = await asyncio.to_thread(binary, "kubectl")
    command = [
        str(program),
        "--kubeconfig",
        str(kubeconfig),
        "--cache-dir",
        str(kubeconfig.parent / "cache"),
        *arguments,
    ]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, problem = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 0, problem.decode()
    return out.decode()


@pytest.mark.kubectl
@pytest.mark.parametrize("example", FOLDERS)
async def test_kubectl_applies_the_example_and_shows_the_policy_at_work(example: str, tmp_path: Path) -> None:
    async with playing(example, PROFILES[example]) as on:
        with written_kubeconfig(on.sandbox.kubeconfig(), tmp_path / "kubeconfig") as kubeconfig:
            files = [str(EXAMPLES / example / name) for name in ("policy.yaml", WORKLOADS.get(example, "pods.yaml"))]
            applied = await _kubectl(kubeconfig, "apply", "-f", files[0], "-f", files[1])
            assert "created" in applied
            assert "unchanged" in await _kubectl(kubeconfig, "apply", "-f", files[0])
            await _kubectl(kubeconfig, "wait", "spol", "--all", "--for=condition=Active", "--timeout=10s")
            rows = (await _kubectl(kubeconfig, "get", "spol")).splitlines()
            assert rows[0].split() == ["NAME", "MODE", "WEIGHT", "RULES", "COMPILED", "ACTIVE", "AGE"]
            assert rows[1].split()[1] == "Enforce"
            assert rows[1].split()[4:6] == ["True", "True"]
            pods = json.loads(await _kubectl(kubeconfig, "get", "pods", "-o", "json"))["items"]
            assert {pod["spec"]["schedulerName"] for pod in pods} <= {PROFILES[example]}
