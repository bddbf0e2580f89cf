"""Hypothesis strategies: a few nodes with their pods, a pod to place, and a moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.language.frames import TableFrame
from tests.strategies import WORDS

_TEXT = st.sampled_from(WORDS)
_MAYBE = st.one_of(st.none(), _TEXT)
_COUNT = st.integers(-3, 5000).map(float)
_STEPS = st.integers(0, 2000).map(lambda steps: steps * 10.0)
_MEASURED = st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from((float("inf"), float("nan"), 1e-320, 0.1)))
_COUNTS = (
    "node.free.pods", "node.free.cpu", "node.requested.cpu", "node.free.memory", "node.cached_image_bytes",
    "node.group_members",
    'node.free["gpu"]', "node.allocatable.cpu", 'node.allocatable["gpu"]',
)  # fmt: skip
_KEYS = ("x", "y", "a", "b", "ab")
_LIMITS = ("pod.limits.cpu", "pod.limits.memory", 'pod.limits["gpu"]', 'pod.limits["a"]', 'pod.limits["3"]')
_FLAGS = (
    'node.taints.has_effect("NoExecute")',
    "node.ready",
    "node.cordoned",
    'node.taints.has("k")',
    'node.taints.has("a")',
)
ROW: Mapping[str, st.SearchStrategy[Any]] = {
    "node.name": _TEXT,
    "node.zone": _MAYBE,
    "node.arch": _MAYBE,
    "node.kernel_version": _MAYBE,
    **{f'node.labels["{key}"]': _MAYBE for key in _KEYS},
    **{f'node.conditions["{key}"]': _MAYBE for key in _KEYS},
    **{f'node.taints.{part}("{key}")': _MAYBE for key in _KEYS for part in ("value", "effect")},
    'node.addresses["x"]': _MAYBE,
    **dict.fromkeys(_COUNTS, _COUNT),
    **dict.fromkeys(_FLAGS, st.booleans()),
    "node.age": _STEPS,
    "metrics.load": _MEASURED,
    "metrics.cores": _MEASURED,
}
POD: Mapping[str, st.SearchStrategy[Any]] = {
    "pod.name": _TEXT,
    'pod.labels["x"]': _MAYBE,
    'pod.annotations["x"]': _MAYBE,
    **dict.fromkeys(("pod.requests.cpu", "pod.image_bytes", "pod.priority", "cluster.nodes"), _COUNT),
    "pod.age": _STEPS,
    "pod.containers": _COUNT,
    **{name: st.one_of(st.none(), _COUNT) for name in _LIMITS},
    **{f'pod.tolerations.has("{key}")': st.booleans() for key in (*_KEYS, *WORDS)},
    'pod.tolerations.value("x")': _MAYBE,
    **dict.fromkeys(("group.name", 'group.labels["x"]'), _MAYBE),
    **dict.fromkeys(("group.placed", 'group.requests["gpu"]'), _COUNT),
    "group.min_count": st.one_of(st.none(), _COUNT),
    **{name: st.lists(_TEXT, max_size=3) for name in ("pod.images", "pod.claims")},
}
PEER: Mapping[str, st.SearchStrategy[Any]] = {
    "peer.name": _TEXT,
    "peer.namespace": _TEXT,
    **{f'peer.labels["{key}"]': _MAYBE for key in ("x", "y", "a")},
    "peer.owner_kind": _MAYBE,
    "peer.phase": _TEXT,
    "peer.age": st.one_of(st.none(), _STEPS),
    'peer.annotations["x"]': _MAYBE,
    **dict.fromkeys(
        ("peer.priority", "peer.requests.cpu", "peer.requests.memory", "peer.image_bytes", 'peer.requests["gpu"]'),
        _COUNT,
    ),
}
# From 2000 to 2050, so that clocks are put forward and back.
MOMENTS = st.integers(946_684_800, 2_524_608_000).map(float)


@st.composite
def clusters(draw: Callable[[Any], Any], most: int = 6) -> TableFrame:
    """A few nodes, pods on them or on none, and a pod; some nodes are feasible."""
    rows = draw(st.lists(st.fixed_dictionaries(dict(ROW)), max_size=most))
    feasible = draw(st.one_of(st.none(), st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    place = st.integers(-1, len(rows) - 1)
    peers = draw(st.lists(st.fixed_dictionaries({"row": place, **PEER}), max_size=most))
    frame = TableFrame(rows, draw(st.fixed_dictionaries(dict(POD))), peers=peers, now=draw(MOMENTS))
    if feasible is not None:
        frame.feasible = np.array(feasible, np.bool_)
    return frame
