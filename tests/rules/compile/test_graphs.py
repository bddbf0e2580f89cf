"""What graphs are made of is found in as many steps as they have nodes, however often these are used."""

from __future__ import annotations

import pytest

from policysched.rules.compile.graphs import plain_scalars
from tests.rules.build import compiled, filtering

LEVELS = 14


@pytest.mark.parametrize("first", ["cluster.nodes * 3", "sum(node.requested.pods) * 3"])
def test_what_is_used_twice_at_every_level_is_looked_at_once(first: str) -> None:
    doubled = [{"name": f"x{level + 1}", "value": f"x{level} + x{level}"} for level in range(LEVELS)]
    lets = [{"name": "x0", "value": first}, *doubled]
    [rule] = compiled(let=lets, filters=filtering(f"node.requested.pods < x{LEVELS}")).filters
    assert len(plain_scalars(rule.require.root, timed=True)) == 1
