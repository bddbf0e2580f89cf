"""What all tests share: one control plane for those of a process that want it, and a logger that nobody turns down.

Random examples are the same at every run, so that a failure comes again, unless POLICYSCHED_EXAMPLES asks for more of
them; how long one takes is nobody's failure.

Every process of pytest-xdist has a control plane of its own, because its tests wipe it: it starts in seconds, and the
tests may be spread.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.controlplane.plane import ControlPlane

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize="POLICYSCHED_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")
MARKER = "controlplane"
SHARED = pytest.StashKey[ControlPlane]()
FOLDER = pytest.StashKey[Path]()
"""The folder of the last test of the process."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for a control plane, before marks choose what runs."""
    for item in items:
        if control_plane.__name__ in getattr(item, "fixturenames", ()):
            item.add_marker(MARKER)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have the garbage collector skip the objects of other folders, and of the thousands of collected tests."""
    if item.config.stash.get(FOLDER, None) != item.path.parent:
        item.config.stash[FOLDER] = item.path.parent
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say where the control plane's logs are, and keep them, when a test with one fails."""
    report = yield
    plane = item.config.stash.get(SHARED, None)
    if report.failed and plane is not None and item.get_closest_marker(MARKER):
        plane.keep_logs = True
        report.sections.append(("control plane", f"logs: {plane.logs}"))
    return report


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A real control plane, shared: a test takes a corner of it, or wipes it."""
    with ControlPlane(users={"scheduler": (), "nobody": ()}) as plane:
        request.config.stash[SHARED] = plane
        yield plane


@pytest.fixture(autouse=True)
def logger_as_it_was() -> Iterator[None]:
    """Undo what a command that runs in the test's process does to our logger."""
    logger = logging.getLogger("policysched")
    before = logger.level
    yield
    logger.setLevel(before)


@pytest.fixture(scope="module")
def others_apart() -> None:
    """Have the garbage collector skip the objects of other modules: a test's time is that of its own objects."""
    gc.collect()
    gc.freeze()
