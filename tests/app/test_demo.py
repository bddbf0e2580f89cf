from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from rich.console import RenderableType
from rich.table import Table

from policysched.app.demo.demo import NEXT_STEPS, decision_parts, demo_nodes, demo_pod, demo_policy, play
from policysched.app.demo.devices import play_devices
from policysched.app.demo.gang import MEMBERS, play_gang
from policysched.app.demo.scheduled_sandbox import scheduled_sandbox
from policysched.app.examples import find_example
from policysched.cli.tables import table_lines
from policysched.errors import PolicyschedError
from tests.app.showing import lines
from tools.documents.markdown import ROOT

URL = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Documentation"]

GROUP_ROWS = tuple(f"{name} " for name in MEMBERS)


@dataclass
class Listener:
    """A narrator that remembers."""

    width: int
    said: list[str] = field(default_factory=list)
    awaited: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.said.append(text)

    def show(self, part: RenderableType) -> None:
        shown = table_lines(part, self.width) if isinstance(part, Table) else [part]
        self.said += [str(line) for line in shown]

    def working(self, text: str) -> None:
        self.awaited.append(text)


async def test_demo_shows_each_pod_with_its_scores_and_rules() -> None:
    listener = Listener(80)
    await play(listener)
    rows = {line.split()[0]: line for line in listener.said if line.startswith("web-") and "piworknode" in line}
    places = {pod: row.split()[1] for pod, row in rows.items()}
    assert places == {f"web-{n}": "piworknode001" if n <= 4 else "piworknode002" for n in range(1, 10)}
    assert listener.said[-len(NEXT_STEPS) - 1] == "   web-hdd runs on piworknode003"
    assert listener.awaited[-1] == "waiting for pod web-9"
    assert {"rule ssd rejects master, piworknode003", "rule favourite gives piworknode001 80"} < {*listener.said}
    assert "equal in all rows: TaintToleration 300, SchedulingPolicy/web-on-ssd 80" in listener.said


async def test_demo_of_devices_names_what_pods_get_and_what_is_in_use() -> None:
    listener = Listener(120)
    await play_devices(listener)
    ran = [line.strip() for line in listener.said if " runs on " in line]
    assert ran == [
        "train runs on gpu-2, its claim holds gpu.example.com/gpu-2/gpu-0",
        "infer runs on gpu-1, its claim holds gpu.example.com/gpu-1/gpu-0",
        "train-2 runs on gpu-2, its claim holds gpu.example.com/gpu-2/gpu-0",
    ]
    said = [" ".join(line.split()) for line in listener.said]
    assert "train-gpu gpu gpu.example.com/gpu-2/gpu-0 all" in said
    assert "gpu-1 train-2-gpu gpu 0 of 1 1: in use, 1: selector #0 is false" in said
    assert any("0/3 nodes are available: 3 cannot allocate all claims." in line for line in said)
    assert "pair-1 and pair-2 run on gpu-1, the claim of pair holds gpu.example.com/gpu-1/gpu-1" in said


async def test_demo_of_a_gang_shows_no_node_before_all_members_fit() -> None:
    listener = Listener(120)
    await play_gang(listener)
    said = [" ".join(line.split()) for line in listener.said]
    rows = [line.split() for line in said if line.startswith(GROUP_ROWS)]
    waiting = [[name, "none"] for name in MEMBERS]
    assert rows[: len(waiting) * 2 - 1] == [*waiting[:-1], *waiting]
    places = [node for _, node in rows[len(waiting) * 2 - 1 :]]
    assert sorted(places) == ["node-1", "node-2", "node-3", "node-3"]


async def test_demo_of_a_gang_shows_reasons_and_the_pods_beside_it() -> None:
    listener = Listener(120)
    await play_gang(listener)
    said = [" ".join(line.split()) for line in listener.said]
    reason = (
        "minCount (4) cannot be satisfied: 3 scheduled, 0 remaining, "
        "pod group preemption: No preemption victims found for incoming preemptor"
    )
    told = [
        f"train: PodGroupInitiallyScheduled False, Unschedulable: {reason}",
        f"train-0: FailedScheduling: pod group is unschedulable, {reason}",
        "train-3: FailedScheduling: 0/2 nodes are available: 2 Insufficient cpu.",
        "train: PodGroupInitiallyScheduled True, Scheduled",
    ]
    assert [line for line in said if line.startswith(("train:", *(f"{name}:" for name in MEMBERS)))] == told
    beside = {line.split()[0]: line.split()[-1] for line in said if " runs on " in line}
    assert {*beside} == {"web-1", "web-2"}
    assert sorted(beside.values()) == ["node-1", "node-2"]


@pytest.mark.parametrize("demo", [play, play_devices, play_gang])
async def test_demo_ends_with_the_next_steps(demo: Callable[[Listener], Awaitable[None]]) -> None:
    listener = Listener(120)
    await demo(listener)
    assert listener.said[-len(NEXT_STEPS) :] == [*NEXT_STEPS]


def test_next_steps_exist() -> None:
    title, *steps = NEXT_STEPS
    assert (title, len(steps)) == ("\nNext steps:", 3)
    assert max(map(len, steps)) <= 80
    text = "\n".join(steps)
    for page in re.findall(r"docs/[\w/-]+\.md", text):
        assert (ROOT / page).is_file(), page
    [example] = re.findall(r"policysched example ([\w-]+)", text)
    assert find_example(example).name == "tutorial"
    assert URL in text


def test_columns_of_zeros_are_left_out() -> None:
    record = {"scores": {"n1": {"ImageLocality": 0, "TaintToleration": 300}}, "rules": {}}
    (table,) = decision_parts([("web", "n1", record)])
    shown = " ".join(lines(table))
    assert "TaintToleration" in shown
    assert "Image" not in shown


async def test_stage_says_what_did_not_happen_in_time() -> None:
    async def never() -> None:
        return None

    async with scheduled_sandbox(demo_nodes()) as on:
        with pytest.raises(PolicyschedError, match=r"^timed out after 0\.05 s waiting for a miracle$"):
            await on.until(never, "a miracle", 0.05)


async def test_stage_notices_that_the_scheduler_ended() -> None:
    async def never() -> None:
        return None

    async with scheduled_sandbox(demo_nodes()) as on:
        on.scheduler.cancel()
        with pytest.raises(asyncio.CancelledError):
            await on.until(never, "a miracle", 5)


async def test_applied_policy_has_only_the_fields_of_the_new_version() -> None:
    async with scheduled_sandbox(demo_nodes()) as on:
        await on.apply(demo_policy())
        plain = demo_policy()
        del plain["spec"]["filters"]
        assert "filters" not in (await on.apply(plain))["spec"]
        record = on.explain(demo_pod("web"))
        assert sorted(record["scores"]) == ["piworknode001", "piworknode002", "piworknode003"]
