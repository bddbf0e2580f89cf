"""Plugins are asked, and what they answer does, as in kube-scheduler: random scripts.

`POLICYSCHED_SCRIPTS` says how many, `POLICYSCHED_SEED` which ones.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.recorder.judge import disagreement, shrink
from tests.recorder.scripts import scripts
from tests.recorder.theirs import KubeScheduler

pytestmark = pytest.mark.oracle
SEED = int(os.environ.get("POLICYSCHED_SEED", "1"))
COUNT = int(os.environ.get("POLICYSCHED_SCRIPTS", "60"))


def test_random_scripts_go_as_in_kube_scheduler(kube: KubeScheduler, tmp_path: Path) -> None:
    print(f"POLICYSCHED_SEED={SEED} POLICYSCHED_SCRIPTS={COUNT}")  # noqa: T201 - read after a failure
    for script in scripts(SEED, COUNT):
        if disagreement(kube, script):
            small = shrink(script, lambda one: bool(disagreement(kube, one, runs=8)))
            kept = tmp_path / "script.json"
            kept.write_text(json.dumps(small, indent=1), encoding="utf-8")
            told = "\n".join(disagreement(kube, small))
            pytest.fail(f"{script['id']} differs; python -m tests.recorder.judge {kept}\n{told}", pytrace=False)
