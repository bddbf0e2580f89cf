"""docs/reference/metrics.md lists what a scheduler shows under /metrics, no more and no less."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.app.serving.ports import free_port
from tests.e2e.schedulers import spawned
from tests.e2e.server import Server
from tests.e2e.test_serving import ALL_OPEN, Port
from tests.e2e.waiting import until
from tools.documents.markdown import ROOT
from tools.reference import metrics

PAGE = ROOT / "docs" / "reference" / "metrics.md"
TITLES = ("## Metrics of kube-scheduler", "## Metrics of policysched")
GATES = "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
"""With these gates, all metrics of the page exist."""


def listed(text: str) -> set[str]:
    """The metrics that the page's tables say are there."""
    found: set[str] = set()
    for title in TITLES:
        section = text.partition(f"{title}\n")[2].partition("\n#")[0]
        for line in section.splitlines():
            if line.startswith("| `"):
                found |= set(re.findall(r"`([a-z_]+)`", line.split("|")[1]))
    return found


def shown(text: str) -> dict[str, set[str]]:
    """The metrics that were scraped, each with its labels."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    found: dict[str, set[str]] = {name: set() for name in kinds}
    for name, labels in re.findall(r"^([a-z_]+)(?:\{(.*)\})? ", text, re.MULTILINE):
        family = name if name in kinds else re.sub(r"_(bucket|sum|count)$", "", name)
        found[family] |= set(re.findall(r'(\w+)="', labels)) - {"le"}
    return found


async def test_the_page_lists_what_is_shown(sandbox_server: Server, tmp_path: Path) -> None:
    config, port = tmp_path / "config.yaml", Port(free_port())
    election = {"leaderElect": True, "resourceNamespace": "kube-system"}
    connection = {"kubeconfig": str(sandbox_server.kubeconfig)}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**head, "leaderElection": election, "clientConnection": connection}))
    flags = [f"--config={config}", f"--secure-port={port.number}", "--bind-address=127.0.0.1", ALL_OPEN, GATES]
    async with spawned(*flags):
        text = (await until(lambda: port.get("/metrics"), lambda answer: answer[0] == 200))[1]
    page = PAGE.read_text("utf-8")
    assert set(shown(text)) == listed(page)


def test_every_note_is_about_a_metric() -> None:
    assert metrics.NOTES.keys() <= listed(PAGE.read_text("utf-8"))


def test_a_metric_that_is_not_listed_would_be_found() -> None:
    text = '# TYPE policysched_new_total counter\npolicysched_new_total{a="b"} 1.0\n'
    assert shown(text) == {"policysched_new_total": {"a"}}
    page = PAGE.read_text("utf-8")
    assert "policysched_new_total" not in listed(page)
    assert len(listed(page)) > 30
