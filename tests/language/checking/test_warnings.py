from __future__ import annotations

from typing import Any

import pytest

from policysched.language import Compiled, Environment, Unit, Want, compile_expression
from policysched.language.checking.compile import compile_cases


def warnings_of(compiled: Compiled) -> list[str]:
    assert compiled.program is not None
    return [item.code for item in compiled.diagnostics]


@pytest.mark.parametrize(
    ("text", "phase", "want", "codes"),
    [
        ('number(node.labels["a"]) > 1', "filter", Want.CONDITION, ["W0701"]),
        ('(number(node.labels["a"]) > 1) ?? false', "filter", Want.CONDITION, []),
        ("node.free.cpu / node.allocatable.cpu > 50%", "filter", Want.CONDITION, []),
        ('node.labels["a"] == "x"', "filter", Want.CONDITION, []),
        ('number(pod.labels["a"]) > 1', "pod", Want.CONDITION, ["W0701"]),
        ('has(node.labels["a"]) and starts_with(node.labels["a"], "b")', "filter", Want.CONDITION, []),
        ('has(node.labels["a"]) and starts_with(node.labels["b"], "b")', "filter", Want.CONDITION, ["W0701"]),
        ('has(node.labels["a"]) or starts_with(node.labels["a"], "b")', "filter", Want.CONDITION, ["W0701"]),
        ('not has(node.labels["a"]) or starts_with(node.labels["a"], "b")', "filter", Want.CONDITION, []),
        ('node.ready or (has(node.zone) and glob(node.zone, "b"))', "filter", Want.CONDITION, []),
        ('has(node.zone) and (node.ready or glob(node.zone, "b"))', "filter", Want.CONDITION, []),
        ('if(has(node.zone), glob(node.zone, "b"), node.ready)', "filter", Want.CONDITION, []),
        ('if(not has(node.zone), node.ready, glob(node.zone, "b"))', "filter", Want.CONDITION, []),
        ('if(has(node.zone), node.ready, glob(node.zone, "b"))', "filter", Want.CONDITION, ["W0701"]),
        ('has(number(node.labels["a"])) and number(node.labels["a"]) < 1', "filter", Want.CONDITION, []),
        ('has(node.labels["a"]) and number(node.labels["a"]) < 1', "filter", Want.CONDITION, ["W0701"]),
        ('node.zone == "a" and starts_with(node.zone, "a")', "filter", Want.CONDITION, []),
        ('node.zone in ["a", "b"] and ends_with(node.zone, "a")', "filter", Want.CONDITION, []),
        ('node.zone == "a" and starts_with(node.region, "a")', "filter", Want.CONDITION, ["W0701"]),
        ('node.zone != "a" and starts_with(node.zone, "a")', "filter", Want.CONDITION, ["W0701"]),
        ('node.zone != "a" or starts_with(node.zone, "a")', "filter", Want.CONDITION, []),
        ('node.zone not in ["a"] and starts_with(node.zone, "a")', "filter", Want.CONDITION, ["W0701"]),
        ('not has(node.zone) and starts_with(node.zone, "a")', "filter", Want.CONDITION, ["W0701"]),
        ('not (node.zone == "a") and starts_with(node.zone, "a")', "filter", Want.CONDITION, ["W0701"]),
        ('starts_with(node.zone, "a") and ends_with(node.zone, "a")', "filter", Want.CONDITION, ["W0701"]),
        ('starts_with(node.zone, "a") or ends_with(node.zone, "a")', "filter", Want.CONDITION, ["W0701"]),
        ('number(node.labels["a"]) == 1 and glob(node.labels["a"], "1*")', "filter", Want.CONDITION, []),
        ('number(node.labels["a"])', "score", Want.NUMBER, ["W0701"]),
        ('number(node.labels["a"]) ?? 0', "score", Want.NUMBER, []),
        ('number(node.labels["a"])', "let", Want.ANY, []),
        ("true", "filter", Want.CONDITION, ["W0703"]),
        ("1 / 0 > 1", "filter", Want.CONDITION, ["W0703"]),
        ("node.ready and node.free.cpu / 0 > 1", "filter", Want.CONDITION, ["W0703"]),
        ("1 / (node.free.pods - node.free.pods) > 1", "filter", Want.CONDITION, []),
        ('number("abc") > 1', "filter", Want.CONDITION, ["W0703"]),
        ("100 / -0", "score", Want.NUMBER, ["W0703"]),
        ("cluster.nodes / (2 - 2)", "let", Want.ANY, ["W0703"]),
        ("only(1 > 2, 3) > 1", "pod", Want.CONDITION, ["W0703"]),
        ('clock("22:00", "06:00")', "pod", Want.CONDITION, []),
        ("80%", "score", Want.NUMBER, ["W0704"]),
        ("if(node.ready, 80%, 20)", "score", Want.NUMBER, ["W0704"]),
        ("clamp(node.free.pods, 0%, 100%)", "score", Want.NUMBER, ["W0704"]),
        ("only(node.ready, 3) ?? 80%", "score", Want.NUMBER, ["W0704"]),
        ("scale(80%, 0%, 100%)", "score", Want.NUMBER, ["W0707"]),
        ("50", "score", Want.NUMBER, ["W0707"]),
        ("pod.priority", "score", Want.NUMBER, ["W0707"]),
        ("count(node.ready)", "score", Want.NUMBER, ["W0707"]),
        ("node.free.cpu / node.allocatable.cpu", "score", Want.NUMBER, ["W0707"]),
        ("node.requested.memory / node.allocatable.memory", "score", Want.NUMBER, ["W0707"]),
        ('node.free["a.com/x"] / node.allocatable["a.com/x"]', "score", Want.NUMBER, ["W0707"]),
        ("100 * node.free.cpu / node.allocatable.cpu", "score", Want.NUMBER, []),
        ("1 - node.free.cpu / node.allocatable.cpu", "score", Want.NUMBER, ["W0707"]),
        ("clamp(node.free.cpu / 1000m, 99.5, 100)", "score", Want.NUMBER, ["W0707"]),
        ("-node.allocatable.pods", "score", Want.NUMBER, ["W0707"]),
        ("100 + node.requested.pods", "score", Want.NUMBER, ["W0707"]),
        ("normalize(node.free.cpu)", "score", Want.NUMBER, []),
        ("scale(node.free.cpu / node.allocatable.cpu, 0%, 100%)", "score", Want.NUMBER, []),
        ("if(node.ready, 1, 0)", "score", Want.NUMBER, []),
        ("50 + node.free.cpu / node.allocatable.cpu", "score", Want.NUMBER, ["W0707"]),
        ("50 + node.free.pods / node.allocatable.pods / 2", "score", Want.NUMBER, ["W0707"]),
        ('50 + node.free["a.com/x"] / node.allocatable["a.com/x"]', "score", Want.NUMBER, []),
        ("50 + 50 * node.free.cpu / node.allocatable.cpu", "score", Want.NUMBER, []),
        ("50 + 2 * node.free.cpu / node.allocatable.cpu", "score", Want.NUMBER, []),
        ("150 + scale(node.free.cpu / node.allocatable.cpu, 0%, 100%)", "score", Want.NUMBER, ["W0707"]),
        ("50 + scale(node.free.cpu / node.allocatable.cpu, 0%, 100%)", "score", Want.NUMBER, []),
        ("scale(node.free.cpu / node.allocatable.cpu, 0%, 100%) / 100", "score", Want.NUMBER, ["W0707"]),
        ("scale(node.free.memory, 0Gi, 64Gi) * 1%", "score", Want.NUMBER, ["W0707"]),
        ("scale(node.free.memory, 0Gi, 64Gi) / 50", "score", Want.NUMBER, []),
        ("scale(node.free.memory, pod.requests.memory, max(node.free.memory)) / 200", "score", Want.NUMBER, ["W0707"]),
        ("50 + scale(node.free.memory, 0Gi, node.allocatable.memory) / 200", "score", Want.NUMBER, []),
        ("normalize(50)", "score", Want.NUMBER, ["W0707"]),
        ('if(node.labels[pod.namespace] == "a", 50, 100)', "score", Want.NUMBER, []),
        ("sum(node.free.pods) by node.labels[pod.namespace] ?? 0", "score", Want.NUMBER, []),
        ("node.pods.count(peer.namespace == pod.namespace)", "score", Want.NUMBER, []),
        ("normalize(node.pods.count(peer.namespace == pod.namespace))", "score", Want.NUMBER, []),
        ("normalize(pod.priority) / 2", "score", Want.NUMBER, ["W0707"]),
        ("normalize(node.free.pods)", "score", Want.NUMBER, []),
        ("node.free.cpu / node.free.cpu", "score", Want.NUMBER, ["W0707"]),
        ("100 * node.free.cpu / node.free.cpu", "score", Want.NUMBER, []),
        ("least(node.free.pods, 1)", "score", Want.NUMBER, []),
        ("least(node.pods.count(peer.priority > 0), 1)", "score", Want.NUMBER, []),
        ("50 + only(node.ready, 0.5)", "score", Want.NUMBER, []),
        ("only(node.ready, node.free.cpu / node.allocatable.cpu) + 50", "score", Want.NUMBER, []),
        ("if(node.free.cpu / node.allocatable.cpu > 0.5, 50, 50.4)", "score", Want.NUMBER, ["W0707"]),
        ("if(node.free.cpu / node.allocatable.cpu > 0.5, 1, 0)", "score", Want.NUMBER, []),
        ("50 + node.free.memory / max(node.free.memory)", "score", Want.NUMBER, []),
        ("50 + 100 * node.free.memory / max(node.free.memory)", "score", Want.NUMBER, []),
        ("node.age / 1d", "score", Want.NUMBER, []),
        ("node.free.memory / 1Gi", "score", Want.NUMBER, []),
        ("if(node.ready, 0.5, 0)", "score", Want.NUMBER, ["W0707"]),
        ("if(node.ready, 5, 0)", "score", Want.NUMBER, []),
        ("only(node.ready, 50)", "score", Want.NUMBER, []),
        ("metrics.load", "score", Want.NUMBER, ["W0701"]),
        ("hour() > 23", "pod", Want.CONDITION, ["W0703"]),
        ("hour() >= 0", "pod", Want.CONDITION, ["W0703"]),
        ("hour() > 22", "pod", Want.CONDITION, []),
        ("node.allocatable.cpu < 0", "filter", Want.CONDITION, ["W0703"]),
        ("node.free.cpu < 0", "filter", Want.CONDITION, []),
        ("node.free.cpu / node.allocatable.cpu > 1", "filter", Want.CONDITION, ["W0703"]),
        ("node.free.cpu / node.allocatable.cpu > 100%", "filter", Want.CONDITION, ["W0703"]),
        ("node.requested.cpu / node.allocatable.cpu > 1", "filter", Want.CONDITION, []),
        ('node.zone == "a" and node.zone == "b"', "filter", Want.CONDITION, ["W0703"]),
        ('node.zone in ["a", "c"] and "b" == node.zone', "filter", Want.CONDITION, ["W0703"]),
        ('node.zone in ["a", "b"] and node.zone == "b"', "filter", Want.CONDITION, []),
        ('node.zone == "a" or node.zone == "b"', "filter", Want.CONDITION, []),
        ("pod.priority > 5 and pod.priority < 3", "pod", Want.CONDITION, ["W0703"]),
        ("pod.priority > 5 and node.ready and 5 >= pod.priority", "filter", Want.CONDITION, ["W0703"]),
        ("(pod.priority >= 5 and node.ready) and pod.priority < 5", "filter", Want.CONDITION, ["W0703"]),
        ("pod.priority >= 5 and pod.priority <= 5", "pod", Want.CONDITION, []),
        ("5 <= pod.priority and pod.priority < 6", "pod", Want.CONDITION, []),
        ("pod.priority == 5 and pod.priority > 5", "pod", Want.CONDITION, ["W0703"]),
        ("pod.priority in [1, 2] and pod.priority == 3", "pod", Want.CONDITION, ["W0703"]),
        ('node.zone == "a" and node.zone != "a"', "filter", Want.CONDITION, ["W0703"]),
        ('node.zone in ["a", "b"] and node.zone not in ["b", "a"]', "filter", Want.CONDITION, ["W0703"]),
        ('node.zone in ["a", "b"] and node.zone != "a"', "filter", Want.CONDITION, []),
        ('node.zone != "a" and node.zone != "b"', "filter", Want.CONDITION, []),
        ('has(pod.labels["a"]) and not has(pod.labels["a"])', "pod", Want.CONDITION, ["W0703"]),
        ('has(pod.labels["a"]) and not has(pod.labels["b"])', "pod", Want.CONDITION, []),
        ("node.ready or not node.ready", "filter", Want.CONDITION, ["W0703"]),
        ("metrics.load > 1 or not metrics.load > 1", "filter", Want.CONDITION, ["W0701"]),
        (
            '"a" in split(pod.annotations["x"], ",") and "b" in split(pod.annotations["x"], ",")',
            "pod",
            Want.CONDITION,
            [],
        ),
        ('node.labels["a"] != "x" or node.labels["a"] != "y"', "filter", Want.CONDITION, ["W0703"]),
        ('node.labels["a"] != "x" or node.labels["b"] != "y"', "filter", Want.CONDITION, []),
        ('node.labels["a"] == "x" or node.labels["a"] != "x"', "filter", Want.CONDITION, ["W0703"]),
        ('node.labels["a"] == "x" or node.labels["a"] != "y"', "filter", Want.CONDITION, []),
        ('node.zone not in ["a"] or node.zone not in ["b", "c"]', "filter", Want.CONDITION, ["W0703"]),
        ("node.free.cpu > 2 or node.free.cpu <= 4", "filter", Want.CONDITION, ["W0703"]),
        ("node.free.cpu > 4 or node.free.cpu <= 2", "filter", Want.CONDITION, []),
        ("metrics.load > 2 or metrics.load <= 4", "filter", Want.CONDITION, ["W0701"]),
        ("node.age < 0s", "filter", Want.CONDITION, ["W0703"]),
        ("node.age <= 0s", "filter", Want.CONDITION, []),
        ("pod.age >= 0s", "pod", Want.CONDITION, ["W0703"]),
        ("(metrics.load > 5 and metrics.load < 3) ?? false", "filter", Want.CONDITION, ["W0703"]),
        ("not (metrics.load > 5 and metrics.load < 3)", "filter", Want.CONDITION, ["W0701"]),
        ("not node.allocatable.cpu < 0", "filter", Want.CONDITION, ["W0703"]),
        ("node.pods.count(peer.priority > 0) >= 0", "filter", Want.CONDITION, ["W0703"]),
        ("node.pods.any(peer.requests.cpu < 0)", "filter", Want.CONDITION, ["W0703"]),
        ("node.free.cpu > 500", "filter", Want.CONDITION, ["W0708"]),
        ("2000 <= node.allocatable.cpu", "filter", Want.CONDITION, ["W0708"]),
        ("node.free.cpu > 500m", "filter", Want.CONDITION, []),
        ("node.free.cpu > 128", "filter", Want.CONDITION, []),
        ("sum(node.free.cpu) > 500", "filter", Want.CONDITION, []),
        ("node.free.cpu * 100 > 500", "filter", Want.CONDITION, []),
        ("100 * node.requested.cpu / 8 > 500", "filter", Want.CONDITION, []),
        ("node.free.cpu / 10% > 500", "filter", Want.CONDITION, []),
        ("node.free.cpu - pod.requests.cpu * 200 > 500", "filter", Want.CONDITION, []),
        ("count(node.ready) * node.free.cpu > 500", "filter", Want.CONDITION, []),
        ("node.free.cpu in [500, 1000]", "filter", Want.CONDITION, ["W0708", "W0708"]),
        ("node.free.cpu in [2, 500m]", "filter", Want.CONDITION, []),
        ("node.free.cpu not in [2, 500]", "filter", Want.CONDITION, ["W0708"]),
        ("node.pods.sum(peer.requests.cpu) > 500", "filter", Want.CONDITION, ["W0708"]),
        ("node.pods.sum(peer.requests.cpu, peer.priority > 0) > 250", "filter", Want.CONDITION, []),
        ("node.pods.sum(peer.requests.cpu * 100) > 500", "filter", Want.CONDITION, []),
        ("node.pods.any(peer.requests.cpu > 250)", "filter", Want.CONDITION, ["W0708"]),
        ("pod.requests.cpu > 250", "pod", Want.CONDITION, ["W0708"]),
        ("pod.requests.cpu > 250m", "pod", Want.CONDITION, []),
        ("pod.requests.cpu > 192", "pod", Want.CONDITION, []),
        ("pod.requests.cpu in [250, 2]", "pod", Want.CONDITION, ["W0708"]),
        ("node.free.cpu - pod.requests.cpu > 250", "filter", Want.CONDITION, []),
        ("clamp(node.free.cpu, 0, 4) > 500", "filter", Want.CONDITION, ["W0703", "W0708"]),
    ],
)
def test_warnings_are_these(text: str, phase: Any, want: Want, codes: list[str]) -> None:
    assert warnings_of(compile_expression(text, Environment(phase, metrics={"load": Unit.NUMBER}), want)) == codes


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        (['number(node.labels["a"]) > 1 → 5', "else → 1"], ["W0701"]),
        (['number(node.labels["a"]) > 1 → 5', "else → 1", "missing → 2"], []),
        (['node.ready → number(node.labels["a"])'], ["W0701"]),
        (['has(number(node.labels["a"])) → number(node.labels["a"])', "else → 0"], []),
        (['has(node.labels["a"]) → number(node.labels["a"])', "else → 0"], ["W0701"]),
        (["node.ready → 5"], []),
        (["node.ready → 5", "else → 1", "missing → 2"], ["W0702"]),
        (["node.ready → 5", "missing → 2"], []),
        (["node.ready → 80%", "else → 2"], ["W0704"]),
        (["node.ready → 80", "true → 2"], ["W0703"]),
        (["node.ready → 50", "else → 50"], ["W0707"]),
        (["node.ready → 50", "missing → 50"], ["W0707"]),
        (["node.ready → 0.8", "else → 0.2"], ["W0707"]),
        (["node.ready → 1"], []),
        (["node.ready → 0.9"], ["W0707"]),
        (["hour() > 30 → 80", "else → 2"], ["W0703"]),
        (["node.free.cpu > 2 → 5", "node.free.cpu > 4 → 10", "else → 3"], ["W0703"]),
        (["node.free.cpu > 4 → 5", "node.free.cpu > 2 → 10", "else → 3"], []),
        (["node.free.cpu > 4 → 5", "4 < node.free.cpu and node.ready → 10", "else → 3"], ["W0703"]),
        (['node.zone in ["a", "b"] → 5', 'node.zone == "b" → 7', "else → 1"], ["W0703"]),
        (['node.zone == "b" → 5', 'node.zone in ["a", "b"] → 7', "else → 1"], []),
        (['node.zone == "a" → 5', 'node.zone == "b" → 6', 'node.zone in ["a", "b"] → 7', "else → 1"], ["W0703"]),
        (['node.zone == "a" → 5', 'node.zone != "b" → 6', 'node.zone == "c" → 7', "else → 1"], ["W0703"]),
        (["node.ready → 5", "not node.ready → 10", "else → 3"], ["W0703"]),
        (["node.ready → 5", "not node.ready → 10"], []),
        (["node.ready → 5", "not node.ready and node.cordoned → 10", "else → 3"], []),
        (["node.ready or node.cordoned → 5", "node.cordoned and node.free.pods > 3 → 10", "else → 3"], ["W0703"]),
        (["node.ready and node.cordoned → 5", "node.cordoned → 10", "else → 3"], []),
        (["node.ready and node.cordoned → 5", "node.cordoned and node.ready → 10", "else → 3"], ["W0703"]),
        (["node.ready and node.free.cpu > 2 → 5", "node.ready and node.free.cpu > 4 → 7", "else → 3"], ["W0703"]),
        (["node.ready and node.free.cpu > 4 → 5", "node.ready and node.free.cpu > 2 → 7", "else → 3"], []),
        (["node.free.pods > 5 → 5", "node.free.pods <= 5 → 6", "node.ready → 7"], ["W0703"]),
        (["node.free.pods > 5 → 5", "node.free.pods < 5 → 6", "node.ready → 7"], []),
        (["node.free.pods > 5 → 5", "node.free.pods < 5 → 6", "node.free.pods == 5 → 7", "else → 1"], []),
        (
            ['(number(node.labels["a"]) > 2) ?? false → 5', '(number(node.labels["a"]) > 4) ?? false → 7', "else → 1"],
            ["W0703"],
        ),
        (
            ['(number(node.labels["a"]) > 4) ?? false → 5', '(number(node.labels["a"]) > 2) ?? false → 7', "else → 1"],
            [],
        ),
        (
            ['(number(node.labels["a"]) > 2) ?? false → 5', '(number(node.labels["a"]) <= 2) ?? false → 7', "else → 1"],
            [],
        ),
        (['(number(node.labels["a"]) > 2) ?? true → 5', '(number(node.labels["a"]) > 4) ?? false → 7'], ["W0703"]),
        (['(number(node.labels["a"]) > 2) ?? true → 5', '(number(node.labels["a"]) < 1) ?? false → 7'], []),
        (['not (number(node.labels["a"]) > 2) ?? false → 5', '(number(node.labels["a"]) < 1) ?? true → 7'], []),
        (
            [
                '(not (number(node.labels["a"]) > 2)) ?? false → 5',
                "node.ready → 4",
                '(number(node.labels["a"]) < 1) ?? false → 7',
            ],
            ["W0703"],
        ),
        (
            [
                '(number(node.labels["a"]) > 2 and node.ready) ?? false → 5',
                '(number(node.labels["a"]) > 4) ?? false → 7',
                "else → 1",
            ],
            [],
        ),
        (
            [
                '(number(node.labels["a"]) > 2 and node.ready) ?? false → 5',
                'node.ready and number(node.labels["a"]) > 4 → 7',
                "else → 1",
                "missing → 0",
            ],
            ["W0703"],
        ),
        (
            ['number(node.labels["a"]) > 2 → 5', 'number(node.labels["a"]) <= 2 → 7', "else → 1", "missing → 0"],
            ["W0703"],
        ),
        (['number(node.labels["a"]) > 2 → 5', 'number(node.labels["b"]) > 2 → 7', "else → 1", "missing → 0"], []),
        (['has(node.labels["a"]) → 5', 'node.labels["a"] == "x" → 7', "else → 1"], []),
        (['node.labels["a"] != "x" or node.labels["a"] != "y" → 5', "node.ready → 7"], ["W0703"]),
        (["node.free.cpu > 2 → 5", "node.free.cpu > 4 and 1 > 2 → 10", "else → 3"], ["W0703"]),
        (["node.allocatable.cpu < 0 → 80", "node.ready → 50", "else → 2"], ["W0703"]),
    ],
)
def test_warnings_of_cases_are_these(lines: list[str], codes: list[str]) -> None:
    assert warnings_of(compile_cases(lines, Environment("score"))) == codes


def test_missing_arm_stands_beside_the_program() -> None:
    compiled = compile_cases(["node.ready → 5", "missing → 2 + 1"], Environment("score"))
    assert compiled.program is not None
    assert compiled.program.missing_arm == 3.0
    assert compiled.program.text == "node.ready → 5\nmissing → 2 + 1"


def test_normalised_scores_may_have_any_constant() -> None:
    environment = Environment("score", normalized=True)
    assert warnings_of(compile_expression("500", environment, Want.NUMBER)) == ["W0707"]
    assert compile_cases(["node.ready → 500", "else → 2"], environment).diagnostics == ()
    assert [item.code for item in compile_cases(["node.ready → 500", "missing → 500"], environment).errors] == ["E0502"]


def test_errors_of_several_cases_are_collected_in_order() -> None:
    found = compile_cases(["node.nme → 1", "= → 2", "node.ready → node.zone"], Environment("score")).diagnostics
    assert [(item.case, item.code) for item in found] == [(0, "E0202"), (1, "E0101"), (2, "E0501")]


@pytest.mark.parametrize(
    "text",
    [
        "node.pods.count(true) < 3",
        "node.pods.sum(1) < 3",
        "node.pods.sum(pod.requests.cpu, peer.priority > 3) < 3",
        "node.pods.any(peer.namespace == pod.namespace)",
        'any(pod.images, true) and any(pod.images, item == "a:1")',
        'has(node.zone) and has(pod.limits.cpu) and has(node.taints.value("a"))',
        'node.zone ?? "a" == "a" and (number(node.labels["a"]) > 1) ?? true',
    ],
)
def test_what_differs_or_may_be_missing_has_no_warning(text: str) -> None:
    assert compile_expression(text, Environment("filter"), Want.CONDITION).diagnostics == ()
