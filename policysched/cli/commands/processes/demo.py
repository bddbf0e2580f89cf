"""`policysched demo`: show how pods are placed by a policy, with claims or as a gang, without a cluster."""

from __future__ import annotations

import logging

from rich.console import Console, RenderableType
from rich.status import Status
from rich.text import Text

from policysched.app.demo.demo import play
from policysched.app.demo.devices import play_devices
from policysched.app.demo.gang import play_gang
from policysched.cli.event_loop import wait_for
from policysched.cli.flags.processes import DemoFlags
from policysched.cli.rich_output import console, print_parts
from policysched.errors import UsageError
from policysched.visible import visible, visible_lines


class _Terminal:
    """Prints the demo to stdout; if stdout is a terminal, also shows progress."""

    def __init__(self, out: Console, status: Status | None) -> None:
        self._out = out
        self._status = status

    def say(self, text: str) -> None:
        self._out.print(visible_lines(text), soft_wrap=not self._out.is_terminal)

    def show(self, part: RenderableType) -> None:
        print_parts([part], out=self._out)

    def working(self, text: str) -> None:
        if self._status is not None:
            self._status.update(Text(visible(text)))


def demo(flags: DemoFlags) -> int:
    """Run a demo; return the exit code."""
    logging.getLogger("policysched").setLevel(logging.ERROR)
    if flags.devices and flags.gang:
        raise UsageError("--devices and --gang cannot be combined")
    out, story = console(), play_devices if flags.devices else play_gang if flags.gang else play
    if not out.is_terminal:
        wait_for(story(_Terminal(out, None)))
        return 0
    with out.status("starting") as status:
        wait_for(story(_Terminal(out, status)))
    return 0
