"""What a run misses of its targets, and the table of it on the page."""

from __future__ import annotations

import pytest

from bench.cluster.publish import TARGETS_BEGIN, TARGETS_END, TARGETS_PAGE, with_targets
from bench.cluster.report import Report
from bench.cluster.targets import Target, table
from bench.cluster.workloads import KUBE, NULL, OURS
from tests.bench.test_report import drained, report


def run() -> Report:
    return report(drained(KUBE, 100), drained(NULL, 200), drained(OURS, 160))


def test_a_figure_misses_its_bound_by_a_share_of_it() -> None:
    most, least = (Target("t", 2.0, lambda _: None, at_least=so) for so in (False, True))
    assert [most.missed_by(value) for value in (1.0, 2.0, 3.0)] == [0.0, 0.0, 0.5]
    assert [least.missed_by(value) for value in (1.0, 2.0, 3.0)] == [0.5, 0.0, 0.0]


def test_only_what_was_measured_is_told() -> None:
    told = "\n".join(table(run()))
    assert "| basic, pods/s, × kube-scheduler | ≥ 3.2 | 1.60 | 50 % |" in told
    assert "| basic, pods/s, of the null scheduler | ≥ 0.95 | 0.80 | 16 % |" in told
    assert "edited" not in told


def test_the_lowest_of_others_leaves_out_what_has_a_target_of_its_own() -> None:
    of_peers = [drained(one, rate, "pod-affinity") for one, rate in ((KUBE, 10), (NULL, 200), (OURS, 120))]
    others = [drained(one, rate, "secrets") for one, rate in ((KUBE, 100), (NULL, 200), (OURS, 190))]
    claims = [drained(one, rate, "claims-selector") for one, rate in ((KUBE, 100), (NULL, 200), (OURS, 160))]
    told = "\n".join(table(report(*of_peers, *others, *claims)))
    assert "| required affinity, pods/s, × kube-scheduler | ≥ 11.7 | 12.00 | – |" in told
    assert "| required affinity, pods/s, of the null scheduler | ≥ 0.9 | 0.60 | 33 % |" in told
    assert "| the other workloads, pods/s, of the null scheduler, lowest | ≥ 0.9 | 0.95 | – |" in told
    assert "| with devices, pods/s, × kube-scheduler, lowest | ≥ 3 | 1.60 | 47 % |" in told
    assert "| with devices, pods/s, of the null scheduler, lowest | ≥ 0.85 | 0.80 | 6 % |" in told


def test_the_table_goes_into_the_page_again_and_again() -> None:
    page = with_targets(f"before\n{TARGETS_BEGIN}\nold\n{TARGETS_END}\nafter\n", run())
    assert page.startswith(f"before\n{TARGETS_BEGIN}\n| | target") and page.endswith(f"|\n{TARGETS_END}\nafter\n")
    assert with_targets(page, run()) == page
    with pytest.raises(ValueError, match="the page has no"):
        with_targets("a page", run())
    text = TARGETS_PAGE.read_text("utf-8")
    assert (text.count(TARGETS_BEGIN), text.count(TARGETS_END)) == (1, 1)
