"""Lines and tables of a replay for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from policysched.app.dry_run.tables import plain_table
from policysched.app.replay.results import Replayed
from policysched.visible import visible

LIMIT: Final = 20


def replayed_parts(told: Replayed) -> Iterator[RenderableType]:
    """Yield the lines and tables that show the results of a replay."""
    yield Text(visible(told.summary), "bold")
    if told.differences:
        several = told.runs > 1
        rows = [
            [
                *([f"{one.run:,}"] if several else []),
                f"{one.number:,}",
                one.pod,
                one.what,
                visible(one.recorded),
                visible(one.replayed),
            ]
            for one in told.differences[:LIMIT]
        ]
        names = ["run", "decision"] if several else ["decision"]
        table = plain_table("Differences", [*names, "pod", "field", "recorded", "replayed"], rows, range(len(names)))
        if len(told.differences) > LIMIT:
            table.caption = Text(f"… and {len(told.differences) - LIMIT:,} more")
            table.caption_justify = "left"
        yield table
    counted = [(told.placed, "placed"), (told.searches, "with a preemption search")]
    counted += [(told.groups, "pod groups")] if told.groups else []
    counted += [(told.claims, "claims with allocated devices")] if told.claims else []
    yield Text("of these " + ", ".join(f"{count:,} {what}" for count, what in counted))
