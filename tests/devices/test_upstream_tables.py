"""The table tests of Kubernetes' allocator: ours answers each of their calls as theirs does, with all default gates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policysched.devices import Allocator
from policysched.model.release import RELEASES
from tests.controlplane.releases import RELEASES as BUILT
from tests.controlplane.releases import compared
from tests.devices.judge import tables
from tests.devices.playing import claims_of, code_of, judged, said, tables_of

pytestmark = pytest.mark.oracle

CALLS = {"1.36": 213, "1.37": 235}
"""Calls by minor: those of the tables, 4 about order and one that is cancelled in one of its variants."""


@pytest.mark.parametrize("minor", compared())
def test_every_call_of_the_tables_is_answered_as_kubernetes_does(minor: str, tmp_path: Path) -> None:
    told = tables(tmp_path, BUILT[minor])
    release = RELEASES[minor]
    assert len(told) == CALLS[minor]
    differing = []
    for number, one in enumerate(told):
        case = _with_own_names(one["question"])
        theirs = judged(one["answer"])
        ours = said(Allocator(tables_of(case, release), claims_of(case)), 0)
        code = Allocator(tables_of(case, release), claims_of(case)).answers().codes[0]
        if ours != theirs or code != code_of(theirs):
            differing.append(f"{number}: {case}\n  Kubernetes: {theirs}\n  ours: {ours}, {code}")
    assert not differing, f"{len(differing)} differ\n" + "\n".join(differing[:3])
    assert sum(one["own"] for one in told) > 0.9 * len(told), "the gates of most tables do not matter"


def _with_own_names(case: dict[str, Any]) -> dict[str, Any]:
    """Give slices of one name different ones in the same order, as the API server would."""
    seen: set[str] = set()
    for one in case["slices"] or ():
        while one["metadata"]["name"] in seen:
            one["metadata"]["name"] += "-"
        seen.add(one["metadata"]["name"])
    return case
