"""Plugins are asked, and what they answer does, as in kube-scheduler: random scripts.

They are others for each state of the package. `POLICYSCHED_SCRIPTS` says how many, `POLICYSCHED_SEED` which ones.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.oracle.minors import WITH_EACH_MINOR, share
from tests.oracle.seed import seed
from tests.recorder.judge import disagreement, shrink
from tests.recorder.scripts import scripts
from tests.recorder.theirs import KubeScheduler

pytestmark = pytest.mark.oracle
SEED = seed()
COUNT = int(os.environ.get("POLICYSCHED_SCRIPTS") or "300")
FEW = 0.01
"""What part of the scripts may differ."""


@WITH_EACH_MINOR
def test_random_scripts_go_as_in_kube_scheduler(kube: KubeScheduler, tmp_path: Path) -> None:
    """All but a few, in which kube-scheduler does by far most of the time one of several things that it may do."""
    numbers = share(kube, range(COUNT))
    differing = [script for script in scripts(SEED, numbers) if disagreement(kube, script)]
    told = f"POLICYSCHED_SEED={SEED} POLICYSCHED_SCRIPTS={COUNT}: {[script['id'] for script in differing]} differ"
    print(told)  # noqa: T201 - read after a failure
    if len(differing) > len(numbers) * FEW:
        small = shrink(differing[0], lambda one: bool(disagreement(kube, one, runs=8)))
        kept = tmp_path / "script.json"
        kept.write_text(json.dumps(small, indent=1), encoding="utf-8")
        diff = "\n".join(disagreement(kube, small))
        pytest.fail(f"{told}; python -m tests.recorder.judge {kept}\n{diff}", pytrace=False)
