"""docs/start/evaluate.md, followed as it is written, with the audit log of a real API server as the witness."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.deploy.audit import calls, forbidden, rights, unused
from tests.deploy.conftest import READER, Audited, installed_objects
from tests.deploy.operator_machine import Operator, commands
from tests.deploy.rendering import DEPLOY, Json
from tests.e2e.real import RealServer
from tests.pages.listings import steps
from tools.documents.markdown import ROOT, blocks_of

pytestmark = pytest.mark.controlplane
PAGE: Final = ROOT / "docs" / "start" / "evaluate.md"
READS: Final = {"get", "list", "watch"}
LIVE: Final = (
    "policysched why research/pretrain-0",
    "policysched plan --policy tutorial/policy.yaml",
    "policysched dry-run --cluster live --pod tutorial/job.yaml --policy tutorial/policy.yaml",
)
"""Commands of the page without a recorded cluster, and a dry-run."""
WRITES: Final = (
    "kubectl create namespace mine",
    "kubectl -n research delete pod pretrain-0",
    "kubectl label node a100-01 a=b",
    "kubectl get secrets -A",
    "kubectl get configmaps -A",
    "kubectl apply -f crds/",
    "kubectl run web --image=web",
)


def tutorial() -> list[Json]:
    """Return the nodes, namespaces and pods of the tutorial, without owners, which do not exist."""
    objects: list[Json] = yaml.safe_load((ROOT / "examples/tutorial/cluster.yaml").read_text("utf-8"))["items"]
    kept = [one for one in objects if one["kind"] != "ReplicaSet"]
    for one in kept:
        one["metadata"].pop("ownerReferences", None)
    return kept


class Reader:
    """The user of the page's kubeconfig."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    async def runs(self, command: str, codes: str = "[01]") -> str:
        """Run a command that ends with one of some exit codes, and return its output."""
        path = f"export KUBECONFIG=evaluate.kubeconfig PYTHONPATH={ROOT} PATH={Path(sys.prefix) / 'bin'}:$PATH"
        ends = f"case $? in {codes}) ;; *) exit 9 ;; esac"
        return await self.operator.runs(f"{path}; set +e; {command}; {ends}")


@pytest.fixture
async def reader(audited: Audited, cluster: RealServer, tmp_path: Path) -> Reader:
    """Somebody who has made the account and the kubeconfig of the page, at the cluster of the tutorial."""
    await cluster.load(*tutorial())
    operator = Operator(audited.plane, tmp_path)
    rights_shown = [await operator.runs(command) for command in commands("Create a read-only account", PAGE)][3]
    assert "[list]" in rights_shown
    assert "[delete]" not in rights_shown
    config = yaml.safe_load((operator.folder / "evaluate.kubeconfig").read_text("utf-8"))
    assert [one["name"] for one in config["users"]] == ["reader"]
    for block in blocks_of(PAGE.read_text("utf-8")):
        for word in block.words:
            if word.startswith("file="):
                (operator.folder / word.removeprefix("file=")).write_text(block.text)
    return Reader(operator)


async def test_commands_of_the_page_list_and_do_nothing_else(audited: Audited, reader: Reader) -> None:
    before = len(audited.events(READER))
    blocks = [block for block in blocks_of(PAGE.read_text("utf-8")) if block.kind == "console"]
    page = [command.removeprefix("$ ").strip() for block in blocks for command, _ in steps(block)]
    assert {command.split()[1] for command in page} == {"example", "record", "get", "why", "check", "plan", "test"}
    said = "".join([await reader.runs(command) for command in (*page, *LIVE)])
    for text in (
        "objects written to cluster.json",
        "pretrain-0",
        "does not fit a100-01",
        "of 400 pods would get",
        "1 of 1 passed",
        "fits none of 50 nodes",
    ):
        assert text in said, said
    logged = audited.events(READER)[before:]
    assert {event["verb"] for event in logged} <= READS
    assert forbidden(logged) == []
    role = yaml.safe_load((DEPLOY / "base" / "reader.yaml").read_text("utf-8"))
    assert unused(rights([role]), calls(logged)) == [], "the role has no right too many"


async def test_the_account_can_write_nothing_and_read_no_secret(audited: Audited, reader: Reader) -> None:
    before = len(audited.events(READER))
    for command in WRITES:
        assert "orbidden" in await reader.runs(command, "1"), command
    changes = [event for event in audited.events(READER)[before:] if event["verb"] not in READS]
    assert changes
    assert {event["annotations"]["authorization.k8s.io/decision"] for event in changes} == {"forbid"}


async def test_the_page_removes_what_it_made(audited: Audited, reader: Reader) -> None:
    assert installed_objects(audited.plane)
    for command in commands("Clean up", PAGE):
        await reader.operator.runs(command)
    assert installed_objects(audited.plane) == []
