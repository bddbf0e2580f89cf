"""The definition of the SchedulingPolicy resource, as it is shipped with the package."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from policysched.app.files.yaml_nodes import read_yaml
from policysched.errors import PolicyschedError

_NAME = "schedulingpolicies.yaml"


@cache
def policy_definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition; it must not be changed.

    Raises:
        PolicyschedError: the installation lacks it.
    """
    package = resources.files("policysched")
    # A wheel carries the file as data; an editable installation has it beside the package.
    for place in (package / "data" / _NAME, Path(str(package)).parent / "crds" / _NAME):
        if place.is_file():
            found: dict[str, Any] = read_yaml(place.read_text(encoding="utf-8"), str(place))[0][0]
            return found
    raise PolicyschedError(f"this installation lacks {_NAME}: install policysched again")


@cache
def policy_schema() -> dict[str, Any]:
    """Return the schema of the objects; it must not be changed."""
    schema: dict[str, Any] = policy_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema
