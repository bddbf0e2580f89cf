"""Amounts in test files are quantities, as in Kubernetes."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command

TESTS = """policies: []
cluster:
  nodes:
  - {name: a, images: {'app:1': %s}, allocatable: {memory: 64Gi, example.com/gpu: 1e1}}
  - {name: b, allocatable: {memory: 64Gi, cpu: 4000m}}
tests:
- given: an image
  pod: {image: 'app:1', requests: {cpu: 500m, memory: 1.5Gi}}
  expect: {best: [%s]}
"""


@pytest.mark.parametrize(
    ("size", "best"), [("12G", "a"), ("12000000000", "a"), ("1.5Gi", "a"), ("1500M", "a"), ("1k", "a, b")]
)
def test_sizes_of_images_are_quantities(command: Command, tmp_path: Path, size: str, best: str) -> None:
    tests = tmp_path / "tests.yaml"
    tests.write_text(TESTS % (size, best))
    done = command("test", str(tests))
    assert (done.code, done.problem) == (0, ""), done.out


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("12G", "big", "4:33"),
        ("12G", "-1", "4:33"),
        ("1e1", "10GB", "4:84"),
        ("4000m", "four", "5:48"),
        ("500m", "1x", "8:41"),
        ("1.5Gi", "-1Gi", "8:55"),
    ],
)
def test_what_is_no_quantity_is_an_error_with_its_place(
    command: Command, tmp_path: Path, before: str, after: str, place: str
) -> None:
    tests = tmp_path / "tests.yaml"
    tests.write_text((TESTS % ("12G", "a")).replace(before, after))
    done = command("test", str(tests))
    assert done.code == 2
    problem = f'{tests}:{place}: expected a quantity such as 500m, 2 or 8Gi, got "{after}"'
    assert problem in " ".join((done.out + done.problem).split())
