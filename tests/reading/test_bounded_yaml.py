"""YAML of others is read within bounds, and by nothing that has none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.apimachinery.errors import StatusError
from policysched.errors import ConnectionProblemError, UsageError
from policysched.kube.connection import Connection
from policysched.metric_sources.table import read_table
from policysched.reading.bounded_yaml import MAX_DEPTH, BoundsError, TooDeepError, compose, load
from policysched.sandbox.api.requests import body_of
from tests.kube.fake_server import Ticking

ROOT = Path(__file__).parents[2]
MERGES = "a: &a {x: 1}\n" + "".join(
    f"m{number}: &m{number} {{<<: [{', '.join([f'*m{number - 1}' if number else '*a'] * 20)}], k{number}: 1}}\n"
    for number in range(30)
)
"""What takes longer than anybody waits where merges are made without a look at how many there are."""
REPEATS = "a: &a {k: x}\n" + "".join(
    f"b{number}: &b{number} [{', '.join([f'*b{number - 1}' if number else '*a'] * 9)}]\n" for number in range(20)
)
DEEP = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 20_000, "{a: " * 50_000, DEEP, "&a [*a]", "? &a [*a]\n: 1"])
@pytest.mark.parametrize("read", [load, compose])
def test_deep_documents_are_refused(read: Any, text: str) -> None:
    with pytest.raises(TooDeepError):
        read(text)


@pytest.mark.parametrize("text", [MERGES, REPEATS])
@pytest.mark.parametrize("read", [load, compose])
def test_documents_that_aliases_make_large_are_refused(read: Any, text: str) -> None:
    with pytest.raises(BoundsError, match="aliases add more than"):
        read(text)


@pytest.mark.parametrize(
    "text",
    ["!!bool perhaps", "!!int ''", "!!float x", "!!timestamp x", "9" * 5000, "!!python/name:os.system", "2001-99-99"],
)
def test_scalars_that_are_not_what_they_say_are_errors_of_yaml(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load(f"a: {text}")


@pytest.mark.parametrize(
    "text", ["", "a: 1", "a: &b [1, 2.5, x]\nc: *b", "a: &a {b: 1}\nc: {<<: *a, d: 2}", "- ~\n- on"]
)
def test_other_documents_are_read_as_yaml_reads_them(text: str) -> None:
    assert load(text) == yaml.safe_load(text)
    assert load("[" * MAX_DEPTH + "]" * MAX_DEPTH) == yaml.safe_load("[" * MAX_DEPTH + "]" * MAX_DEPTH)


@pytest.mark.parametrize("text", ["!!binary //4=", "!!set {b}", "!!omap [{b: 1}]", "!!pairs [{b: 1}]", ".inf", ".nan"])
def test_values_that_json_has_not_are_refused_with_their_place(text: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        load(f"a:\n- {text}")
    mark = caught.value.problem_mark
    assert mark is not None
    assert (mark.line, mark.column) == (1, 2)


def test_keys_and_dates_are_texts() -> None:
    text = "1: 2026-01-01\n2026-01-01: 2026-01-01T00:00:00Z\n~: 123e4567\n"
    assert load(text) == {"1": "2026-01-01", "2026-01-01": "2026-01-01T00:00:00Z", "~": "123e4567"}
    with pytest.raises(yaml.MarkedYAMLError, match="key is not a text"):
        load("? [1]\n: 2")


def test_metrics_file_of_brackets_does_not_end_the_process() -> None:
    with pytest.raises(UsageError, match=r"file:1:\d+: not valid YAML: nested deeper than 200 levels"):
        read_table("[" * 100_000, "file")


@pytest.mark.parametrize("text", ["[" * 100_000, MERGES, "a: " + "9" * 5000])
async def test_kubeconfig_without_bounds_is_told_in_one_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(ConnectionProblemError, match=r"config is not YAML: [^\n]*$"):
        await Connection.open(Ticking(), kubeconfig=str(file))


def test_merges_do_not_stop_the_sandbox() -> None:
    with pytest.raises(StatusError, match="excessive aliasing"):
        body_of(MERGES.encode(), "application/apply-patch+yaml")


def test_nothing_reads_yaml_without_bounds() -> None:
    call_of_yaml = re.compile(r"yaml\.(?:safe_|unsafe_|full_)?(?:load|compose)(?:_all)?\(")
    found = {
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "policysched").rglob("*.py"))
        for call in call_of_yaml.finditer(path.read_text("utf-8"))
        if path.read_text("utf-8")[: call.start()][-8:] != "bounded_"
    }
    # The second looks at the events of what it composes before that.
    assert found == {"policysched/reading/bounded_yaml.py", "policysched/reading/yaml_nodes.py"}
