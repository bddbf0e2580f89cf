"""Write the record of the examples anew: `python -m tests.app.recording`, after decisions have changed for a reason."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.model.objects import OwnerReference, Pod
from tests.app.recording.recorded import completed, recording
from tests.build import node, pod

ME = "policysched"
EXAMPLE = Path(__file__).parents[3] / "examples" / "tour" / "10-record" / "day.record"


def owned(name: str, workload: str, cpu: int, **more: Any) -> Pod:
    """A pod of a Job."""
    made = pod(name, namespace="team-a", requests={"cpu": cpu}, scheduler_name=ME, **more)
    owner = OwnerReference(api_version="batch/v1", kind="Job", name=workload, uid="u", controller=True)
    return replace(made, metadata=replace(made.metadata, owner_references=[owner]))


async def record(folder: Path) -> None:
    """Record a scheduler with three nodes and some pods, one of which makes room for itself."""
    pods = [owned(f"train-{number}", "train", 1) for number in range(1, 9)]
    async with recording(folder, default_profile(ME), completed({"schedulerName": ME})) as stand:
        for name, disk in (("n1", "hdd"), ("n2", "ssd"), ("n3", "ssd")):
            stand.scheduler.take(node(name, labels={"disk": disk}))
        for one in (*pods, owned("large", "large", 3, priority=10), owned("huge", "huge", 5)):
            await stand.settled(one)
            for of in pods:
                place = dict(stand.client.bound).get(of.key)
                if place is not None:
                    stand.confirm(of, place)
        for key in stand.client.deleted:
            stand.scheduler.drop(next(of for of in pods if of.key == key))
        for _ in range(4):
            await stand.pass_time(4)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(record(Path(made)))
        [written] = Path(made).iterdir()
        EXAMPLE.parent.mkdir(exist_ok=True)
        EXAMPLE.write_bytes(written.read_bytes())
