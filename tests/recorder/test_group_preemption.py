"""Preemption with pod groups goes as in kube-scheduler: random scripts.

They are others for each state of the package. `POLICYSCHED_SCRIPTS` says how many, `POLICYSCHED_SEED` which ones.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.oracle.minors import WITH_GROUPS
from tests.oracle.seed import seed
from tests.recorder.group_preemption_scripts import preemption_scripts
from tests.recorder.judge import disagreement, shrink
from tests.recorder.theirs import KubeScheduler

SEED = seed()
COUNT = int(os.environ.get("POLICYSCHED_SCRIPTS") or "200")
RUNS = 12
"""How often kube-scheduler is asked: it takes the first of equally good nodes in an order that differs."""
MORE_RUNS = 60
"""How often it is asked about a script for which it did not take our node so far."""


@pytest.mark.oracle
@WITH_GROUPS
@pytest.mark.parametrize(
    ("of_groups", "in_zones"),
    [
        pytest.param(False, False, id="pods preempt"),
        pytest.param(True, False, id="groups preempt"),
        pytest.param(True, True, id="groups preempt in zones"),
    ],
)
def test_random_preemption(orderly: KubeScheduler, tmp_path: Path, *, of_groups: bool, in_zones: bool) -> None:
    for script in preemption_scripts(SEED, range(COUNT), of_groups=of_groups, in_zones=in_zones):
        if disagreement(orderly, script, RUNS) and disagreement(orderly, script, MORE_RUNS):
            small = shrink(script, lambda one: bool(disagreement(orderly, one, RUNS)))
            kept = tmp_path / "script.json"
            kept.write_text(json.dumps(small, indent=1), encoding="utf-8")
            diff = "\n".join(disagreement(orderly, small, RUNS))
            pytest.fail(
                f"POLICYSCHED_SEED={SEED} {script['id']}; python -m tests.recorder.judge {kept}\n{diff}", pytrace=False
            )
