"""Every scheduler places a few pods on a real API server, and the report says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.cluster.__main__ import main
from bench.cluster.report import Report, as_markdown
from bench.cluster.workloads import KUBE, NULL, OURS

pytestmark = pytest.mark.controlplane
SIZES = ("--nodes", "5", "--pods", "10", "--no-wait", "--seconds", "60")


def test_every_scheduler_places_pods_and_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ("--workload", "basic", "--scheduler", KUBE, NULL, OURS)
    code = main([*chosen, *SIZES, "--results", str(tmp_path), "--name", "tiny", "-o", "json"])
    text = (tmp_path / "tiny.json").read_text("utf-8")
    assert (code, json.loads(capsys.readouterr().out)) == (0, json.loads(text))
    report = Report.from_json(text)
    assert report.failures == []
    assert [one.scheduler for one in report.figures] == [KUBE, NULL, OURS]
    for one in report.figures:
        assert (one.bound, one.pods, one.nodes, one.wrong) == (10, 10, 5, 0)
        assert one.told_per_second is not None
        assert one.peak_mib is not None and one.peak_mib > 10
        assert one.quality is not None and 0 < one.quality <= 1
    assert (tmp_path / "tiny.md").read_text("utf-8") == as_markdown(report)


@pytest.mark.parametrize("wrong", [["--nodes", "0"], ["--workload", "none"], ["--workload", "basic", "--scheduler"]])
def test_wrong_arguments_are_told(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(wrong)
    assert refused.value.code == 2
