"""The pages' command that saves policies: the file restores them over objects with other UIDs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Command, command
from tests.deploy.operator_machine import PAGE
from tools.documents.markdown import blocks_of

__all__ = ["command"]
SAVED = """\
apiVersion: v1
items:
- apiVersion: policysched.io/v1beta1
  kind: SchedulingPolicy
  metadata:
    annotations:
      policysched.io/last-good: '{"generation":1,"spec":{},"uid":"u-1"}'
    generation: 2
    name: only-ssd
    ownerReferences:
    - apiVersion: v1
      kind: ConfigMap
      name: owner
      uid: u-9
    resourceVersion: "812"
    uid: u-1
  spec:
    filters:
    - name: ssd
      require: nod.labels["disk"] == "ssd"
kind: List
metadata:
  resourceVersion: ""
"""


def commands_of(page: Path, start: str) -> list[str]:
    lines = [line for block in blocks_of(page.read_text("utf-8")) for line in block.text.splitlines()]
    return [line for line in lines if line.startswith(start)]


@pytest.mark.parametrize("page", [PAGE, PAGE.with_name("upgrade.md")], ids=lambda page: page.name)
def test_saved_policies_have_no_identity_and_are_checked(page: Path, command: Command) -> None:
    [save] = commands_of(page, "kubectl get schedulingpolicies -o yaml |")
    _, _, rest = save.partition(" | ")
    subprocess.run(["sh", "-ec", rest], input=SAVED, text=True, check=True)
    [policy] = yaml.safe_load(Path("policies.yaml").read_text("utf-8"))["items"]
    assert not {"uid", "resourceVersion"} & policy["metadata"].keys()
    assert policy["metadata"]["ownerReferences"][0]["uid"] == "u-9"
    [check] = commands_of(page, "policysched check")
    done = command(*check.split()[1:])
    assert (done.code, "unknown name `nod`" in done.out + done.problem) == (1, True)
