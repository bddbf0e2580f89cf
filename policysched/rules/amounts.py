"""Amounts of the resources in inputs of rules: `requests.cpu` is in millicores, `requests["cpu"]` in cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.ir.graph import Input

MILLIS: Final = 1000
RESOURCE_NAMES: Final = {"ephemeral_storage": "ephemeral-storage"}


def resource_of(item: Input) -> str:
    """Return the name of the resource of an input, which is the input's key or its last part."""
    return item.key or RESOURCE_NAMES.get(item.path[-1], item.path[-1])


def amount(amounts: Mapping[str, int], item: Input) -> float:
    """Return the amount of an input's resource: cpu is in millicores, or in cores if the input has a key."""
    found = float(amounts.get(resource_of(item), 0))
    return found / MILLIS if item.key == "cpu" else found
