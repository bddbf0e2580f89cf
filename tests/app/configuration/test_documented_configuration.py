"""The configuration that docs/reference/profiles.md shows does what its words say."""

from __future__ import annotations

from typing import Any

from policysched import dry_run
from policysched.framework import FilterPlugin, ScorePlugin
from policysched.plugins import default_plugins
from policysched.plugins.registry import plugin_entries
from tools.documents.markdown import ROOT, blocks, prose

DOCUMENT = ROOT / "docs" / "reference" / "profiles.md"
[CONFIG] = (one.text for one in blocks(DOCUMENT) if "KubeSchedulerConfiguration" in one.text)
GPU = "nvidia.com/gpu"


def node(name: str, **allocatable: str) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "4", **allocatable}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}


def pod(name: str, on: str = "", **requests: str) -> dict[str, Any]:
    container = {"name": "c", "image": "app", "resources": {"requests": requests, "limits": {GPU: requests[GPU]}}}
    spec = {"containers": [container], **({"nodeName": on} if on else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_the_configuration_packs_pods_by_their_gpus() -> None:
    around = [node("empty"), node("busy"), pod("placed", "busy", cpu="2", **{GPU: "2"})]
    wanted = pod("wanted", cpu="2", **{GPU: "1"})
    usual = dry_run(around, wanted).to_dict()
    packing = dry_run(around, wanted, config=CONFIG).to_dict()
    assert (usual["best"], packing["best"], packing["schedulerName"]) == (["empty"], ["busy"], "packing")
    # 3 of 4 GPUs and half of the cores, three to one; empty: a quarter of both
    assert packing["scores"]["busy"]["NodeResourcesFit"] == 5 * 69
    assert packing["scores"]["empty"]["NodeResourcesFit"] == 5 * 25
    assert not {"ImageLocality", "NodeResourcesBalancedAllocation"} & packing["scores"]["busy"].keys()


def test_the_document_names_the_plugins_that_it_speaks_of() -> None:
    text = " ".join(prose(DOCUMENT).split())
    taking = frozenset(name for name, entry in plugin_entries().items() if entry.arguments is not None)
    assert f"arguments of {listed(taking)}" in text
    plugins = [one.plugin for one in default_plugins()]
    alone = sorted(one.name for one in plugins if isinstance(one, FilterPlugin) and one.filters_alone)
    assert f"{listed(alone)} filter" in text
    scoring = {one.name for one in plugins if isinstance(one, ScorePlugin) and one.scores_alone}
    named = ["NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "VolumeBinding"]
    assert set(named) == scoring
    assert f"{', '.join(named[:-1])} and {named[-1]} score all the same" in text


def listed(names: Any) -> str:
    *first, last = sorted(names)
    return f"{', '.join(first)} and {last}"
