"""The page of Kubernetes versions has a row for every field of the table of releases."""

from __future__ import annotations

from dataclasses import fields

import pytest

from policysched.model.release import RELEASES, Release
from tools.reference.kubernetes_versions import NO_DIFFERENCE, differences, page

FIELDS = [one.name for one in fields(Release) if one.name not in NO_DIFFERENCE]


@pytest.mark.parametrize("field", FIELDS)
def test_a_difference_has_a_sentence_a_source_values_and_a_witness(field: str) -> None:
    one = differences()[field]
    assert one.text.endswith(".")
    assert "/" in one.source, "the docstring ends with `Source: PATH.`"
    [row] = [line for line in page().splitlines() if line.startswith(f"| {one.text} | ")]
    *values, source, witness = row.strip("|").split(" | ")[1:]
    assert len(values) == len(RELEASES)
    assert all(values)
    assert source == f"`{one.source}`"
    assert witness.strip().startswith("`")


def test_every_field_distinguishes_two_releases() -> None:
    same = [name for name in FIELDS if len({getattr(one, name) for one in RELEASES.values()}) == 1]
    assert same == []
