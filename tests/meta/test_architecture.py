"""docs/inside/architecture.md speaks of what is there: its modules, its two walks, its drawing."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from policysched.app.demo.demo import demo_nodes, demo_pod, demo_policy
from policysched.app.demo.scheduled_sandbox import ScheduledSandbox, scheduled_sandbox
from tools.documents.markdown import ROOT, codes, prose
from tools.draw_architecture import DRAWING, boxes, drawing, layers, points, stops

PAGE = ROOT / "docs" / "inside" / "architecture.md"
PACKAGE = ROOT / "policysched"
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and not path.name.startswith("__"))
WALKS = ("A pod's way", "A policy's way")


def named() -> list[str]:
    """What the page has in code that begins with a room of the package, or is a file."""
    return sorted(
        {code for code in codes(prose(PAGE)) if re.match(rf"(policysched[./])?({'|'.join(ROOMS)})[./]\w", code)}
    )


def found(name: str) -> Any:
    """What a name stands for, None where there is nothing: a file, a module, or something in one."""
    if "/" in name:
        path = ROOT / name
        return next((one for one in (path, PACKAGE / name) if one.exists()), None)
    module, _, rest = f"policysched.{name.removeprefix('policysched.')}", "", ""
    parts: list[str] = []
    while True:
        try:
            value: Any = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, rest = module.rpartition(".")
            parts.insert(0, rest)
    for part in parts:
        value = getattr(value, part, None)
    return value


@pytest.mark.parametrize("name", named())
def test_what_the_page_names_is_there(name: str) -> None:
    assert found(name) is not None


def test_the_page_names_many_modules() -> None:
    assert len(named()) > 30
    assert found("schedule.nothing") is None
    assert found("schedule.scheduler.Scheduler.nothing") is None


@pytest.mark.parametrize("walk", WALKS)
def test_a_way_has_at_most_eight_stops(walk: str) -> None:
    assert 5 <= len(stops(walk)) <= 8


@contextmanager
def calls(codes_of: dict[CodeType, str]) -> Iterator[list[str]]:
    """Note which of some functions are called, each the first time."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        name = codes_of.get(frame.f_code) if event == "call" else None
        if name is not None and name not in seen:
            seen.append(name)

    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def functions(walk: str) -> dict[CodeType, str]:
    return {found(name).__code__: name for name in stops(walk)}


async def test_a_pod_goes_its_way() -> None:
    async with scheduled_sandbox(demo_nodes()) as on:
        await placed(on, "first")  # now it is known that pods are watched
        await quiet(on)
        with calls(functions(WALKS[0])) as seen:
            await placed(on, "web")
    assert seen == stops(WALKS[0])


async def quiet(on: ScheduledSandbox) -> None:
    """Wait until nothing has been written for a while."""
    before = -1
    while before != on.sandbox.revision:
        before = on.sandbox.revision
        await asyncio.sleep(0.5)


async def placed(on: ScheduledSandbox, name: str) -> None:
    """Make a pod and wait until it has a node."""

    async def bound() -> str | None:
        pod = await on.api.get("Pod", name)
        node: str | None = pod["spec"].get("nodeName")
        return node

    await on.api.create(demo_pod(name))
    await on.until(bound, f"a node of {name}")


async def test_a_policy_goes_its_way() -> None:
    async with scheduled_sandbox(demo_nodes()) as on:
        await on.apply(demo_policy())  # now it is known that policies are watched
        await quiet(on)
        with calls(functions(WALKS[1])) as seen:
            await on.apply(demo_policy("piworknode002"))
    assert seen == stops(WALKS[1])


def test_the_drawing_is_what_the_script_makes() -> None:
    assert DRAWING.read_text("utf-8") == drawing(), "python tools/draw_architecture.py writes it anew"


def test_the_drawing_has_every_room_and_stop() -> None:
    text = drawing()
    assert [room for room in ROOMS if f">{room}<" not in text and room != "data"] == []
    assert text.count("<circle") >= sum(len(stops(walk)) for walk in WALKS)


def test_layers_are_rows_and_stops_are_apart() -> None:
    placed = boxes()
    assert [len({placed[room].y for room in layer}) for layer in layers()] == [1] * len(layers())
    every = [point for kind in ("pod", "policy") for point in points(kind, placed)]
    assert len({x for x, _ in every}) == len(every)


def test_the_drawing_is_of_this_tree() -> None:
    assert Path(PAGE.parent / "architecture.svg") == DRAWING
