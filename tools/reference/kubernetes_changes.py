"""The reference of changes in Kubernetes versions, from the stored results of `tests.oracle.ladder`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.oracle.ladder.summary import sections, stored

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "kubernetes-changes.md"
HEAD: Final = """---
description: What the newest Kubernetes versions change in kube-scheduler's decisions, found by random cases.
---

# Kubernetes changes

For contributors who check a new Kubernetes version. `make ladder` asks the kube-schedulers of two versions about the
same random cases, and sorts the different answers by cause. A weekly workflow runs it for versions that are newer than
those in [Kubernetes versions](kubernetes-versions.md), which describes the differences for users.

A difference is a place in the answers, where `*` stands for a name and `N` for a number. Its cause is a field of the
cases: the percentage states in how many of them the difference ends without the field. Without a cause (–), cases
differ whatever they contain, or by a field that most cases have. The last column counts the cases that are explained by
the row, together with the rows above it.
"""


def page() -> str:
    """Return the text of the reference page about changes in Kubernetes versions."""
    parts = (f"## From {one.old} to {one.new}\n\n{sections(one, 3)}" for one in reversed(stored()))
    return "\n".join([HEAD, *parts])
