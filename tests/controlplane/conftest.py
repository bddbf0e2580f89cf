from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.controlplane.corner import Corner
from tests.controlplane.plane import ControlPlane


@pytest.fixture
def corner(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Corner]:
    """A corner of the shared control plane, named after the test."""
    made = Corner(control_plane, re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:50].strip("-"))
    yield made
    made.leave()
