"""Policies of the random tests, and the combinations that apply together."""

from __future__ import annotations

import functools
from pathlib import Path

import yaml

from policysched.rules.compile.policy import CompiledPolicy
from tests.rules.build import compiled

SPECS = Path(__file__).with_suffix(".yaml")
TOGETHER = (
    "",
    "labels shadow",
    "calm labels",
    "calm computed",
    "calm surroundings",
    "surroundings",
    "calm images",
    "usage computed",
    "peers",
    "around labels",
    "calm timed",
    "peers around timed",
    "calm teams",
    "calm shifts teams",
)


@functools.cache
def policies() -> tuple[tuple[CompiledPolicy, ...], ...]:
    """Return the combinations of policies; the last one has all policies."""
    made = {name: compiled(name, **spec) for name, spec in yaml.safe_load(SPECS.read_text("utf-8")).items()}
    sets = (*(names.split() for names in TOGETHER), list(made))
    return tuple(tuple(made[name] for name in names) for names in sets)
