"""The report of a run: ratios, tables, and the published page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.cluster.figures import Figures, middle_runs
from bench.cluster.machine import Machine
from bench.cluster.publish import (
    BEGIN,
    END,
    IMAGE,
    LINK,
    PAGE,
    README,
    draw,
    newest,
    with_plot,
    with_tables,
)
from bench.cluster.report import Report, as_markdown, latencies, ratios, tables
from bench.cluster.workloads import KUBE, NULL, OURS

MACHINE = Machine("a processor", 2, 8.0, "6.1", "3.11.7")


def drained(scheduler: str, speed: float, workload: str = "basic", **more: float) -> Figures:
    figures = {"pods_per_second": speed, "told_per_second": speed / 2, "cpu_ms": 100 / speed} | more
    return Figures(workload, scheduler, 5, 10, 10, quiet=True, **figures)  # type: ignore[arg-type]


def steady(scheduler: str, p50: float, workload: str = "steady") -> Figures:
    return Figures(workload, scheduler, 5, 10, 9, p50=p50, p90=2 * p50, p99=3 * p50, worst=4 * p50)


def report(*figures: Figures) -> Report:
    return Report(list(figures), "a command", "2026-01-02", "abc", machine=MACHINE)


def column(found: Report, head: str, table: int = 0) -> list[str]:
    _, heads, rows = tables(found)[table]
    return [row[heads.index(head)] for row in rows]


def test_ratios_are_to_the_same_workload() -> None:
    found = report(drained(KUBE, 100), drained(NULL, 400), drained(OURS, 300), drained(OURS, 50, "mixed"))
    assert column(found, "× kube") == ["–", "4.00", "3.00", "–"]
    assert column(found, "of null") == ["0.25", "–", "0.75", "–"]
    assert column(found, "events × kube") == ["–", "4.00", "3.00", "–"]
    assert column(found, "above null") == ["0.75", "–", "0.08", "–"]


def test_of_several_runs_the_middle_one_is_told() -> None:
    runs = [drained(OURS, speed) for speed in (300, 100, 200)] + [steady(OURS, p50) for p50 in (5, 9)]
    assert middle_runs(runs) == [drained(OURS, 200), steady(OURS, 9)]


def test_policies_are_compared_with_none() -> None:
    found = report(drained(OURS, 400, "apps"), drained(OURS, 300, "apps-20-policies"))
    assert column(found, "of without") == ["–", "0.75"]


def test_steady_rows_have_a_table_of_their_own() -> None:
    edited = steady(OURS, 6, "steady-20-policies-edited")
    found = report(drained(OURS, 1), steady(KUBE, 10), steady(OURS, 5), steady(OURS, 4, "steady-20-policies"), edited)
    assert column(found, "p50 of kube's", 1) == ["–", "0.50", "–", "–"]
    assert column(found, "p50 of without", 1) == ["–", "–", "–", "1.50"]
    assert column(found, "bound", 1) == ["9 of 10"] * 4


def test_a_busy_machine_and_failures_are_told() -> None:
    found = report(replace(drained(OURS, 1), quiet=False, foreign_cores=0.5))
    found.failures.append("basic, null: it ended")
    text = as_markdown(found)
    assert "0.50 *" in text
    assert "## Not measured\n\n- basic, null: it ended\n" in text
    assert "2 cores of a processor, 8 GiB" in text


def test_a_report_is_read_as_it_was_written() -> None:
    found = report(drained(KUBE, 100), steady(OURS, 3))
    assert Report.from_json(found.as_json()) == found


def test_tables_of_a_page_are_replaced() -> None:
    runs = {"run.json": report(drained(KUBE, 100), drained(OURS, 300))}
    page = with_tables(f"before\n{BEGIN}\nold\n{END}\nafter\n", runs)
    assert page.startswith(f"before\n{BEGIN}\n")
    assert page.endswith(f"{END}\nafter\n")
    assert "old" not in page
    assert "../../bench/results/run.json" in page
    assert "(throughput-short.svg)" in page and "(latency.svg)" not in page
    assert with_tables(page, runs) == page
    with pytest.raises(ValueError, match="the page has no"):
        with_tables("a page", runs)


def test_table_of_ratios_has_a_row_for_each_workload() -> None:
    found = report(
        drained(KUBE, 100), drained(NULL, 200), drained(OURS, 300), drained(OURS, 50, "mixed"), steady(OURS, 5)
    )
    heads, _, *rows = ratios(found)
    assert heads.startswith("| workload | nodes | kube-scheduler pods/s | policysched pods/s | pods/s: ratio to ")
    assert rows == [
        "| basic | 5 | 100 | 300 | 3.00 | 1.50 | 3.00 | 0.33 | – |",
        "| mixed | 5 | – | 50 | – | – | – | – | – |",
    ]
    assert list(latencies(found))[2:] == ["| steady | 5 | policysched | 5.0 | 15.0 | 20.0 |"]
    assert list(latencies(report(drained(OURS, 1)))) == []


def test_figures_of_a_later_run_replace_those_of_the_first() -> None:
    first, later = report(drained(KUBE, 100), drained(OURS, 300)), report(drained(OURS, 400))
    page = with_tables(f"{BEGIN}\n{END}\n", {"run.json": first, "later.json": later})
    assert page.index("| basic | 5 | 100 | 400 | 4.00 |") < page.index("run.json") < page.index("later.json")
    found = newest([first, later])
    ours, kube = found.find("basic", OURS), found.find("basic", KUBE)
    assert ours is not None and kube is not None
    assert (ours.pods_per_second, kube.pods_per_second) == (400, 100)


def test_documents_have_a_place_for_a_run() -> None:
    text, readme = PAGE.read_text("utf-8"), README.read_text("utf-8")
    assert (text.count(BEGIN), text.count(END), readme.count(LINK)) == (1, 1, 1)
    assert with_plot(readme).count(IMAGE) == 1
    assert with_plot(with_plot(readme)) == with_plot(readme)


def test_plots_show_every_scheduler_and_are_the_same_again(tmp_path: Path) -> None:
    found = report(drained(KUBE, 100), drained(NULL, 400), drained(OURS, 300), steady(KUBE, 10), steady(OURS, 5))
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        draw(found, tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [f"{name}.{kind}" for name in ("latency", "throughput-short") for kind in ("png", "svg")]
    for name in names:
        content = (tmp_path / "one" / name).read_bytes()
        assert content == (tmp_path / "two" / name).read_bytes()
        if name.endswith("svg"):
            assert {KUBE, OURS} <= {one for one in (KUBE, NULL, OURS) if f">{one}<".encode() in content}
