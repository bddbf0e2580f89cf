"""What those who follow the cluster ask of who knows it: frames, domains, and what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from policysched.framework import Rows
from policysched.language.ir.graph import Typed
from policysched.rules.frame import RuleFrame
from policysched.rules.reads import Knowing
from policysched.rules.subject import Subject

if TYPE_CHECKING:
    from policysched.rules.domains import Domains


class Frames(Knowing, Protocol):
    """Who makes frames."""

    def frame(self, subject: Subject, rows: Rows) -> RuleFrame:
        """Give the frame of some rows."""

    def everything(self) -> Rows:
        """Give the rows of all nodes."""

    def domains(self, key: Typed, subject: Subject) -> Domains:
        """Give the domains of a key."""
