"""Tables of a translation of policies into node affinity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from rich.console import RenderableType
from rich.text import Text

from policysched.app.dry_run.tables import not_applied_table, plain_table


def translation_parts(told: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield the headline, the affinity and the table of rules of a translation.

    Args:
        told: The translation as values of JSON.
    """
    yield Text(_headline(told), style="bold")
    if told["nodeAffinity"] is not None:
        affinity = {"affinity": {"nodeAffinity": told["nodeAffinity"]}}
        yield Text(yaml.safe_dump(affinity, sort_keys=False, width=120).rstrip())
    if told["rules"]:
        rows = [(one["policy"], one["rule"], one["result"], one["detail"]) for one in told["rules"]]
        yield plain_table("Filters", ["policy", "rule", "translation", "detail"], rows)
    if told.get("notApplied"):
        yield not_applied_table(told["notApplied"])


def _headline(told: Mapping[str, Any]) -> str:
    pod = told["pod"]
    if told["nodeAffinity"] is None:
        return f"pod {pod}: the policies in force add no node affinity"
    if told["exact"]:
        return f"pod {pod}: the node affinity allows the same nodes as the policies"
    return f"pod {pod}: the node affinity allows all nodes that the policies allow, and others"
