"""The CustomResourceDefinition of policies that belongs to this version, as a text."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from policysched.errors import PolicyschedError

DEFINITION_FILE: Final = "schedulingpolicies.yaml"


def definition_text() -> str:
    """Return the CustomResourceDefinition as YAML.

    Raises:
        PolicyschedError: the installation lacks it.
    """
    package = resources.files("policysched")
    # A wheel has the file as data; an editable installation has it beside the package.
    for place in (package / "data" / DEFINITION_FILE, Path(str(package)).parent / "crds" / DEFINITION_FILE):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise PolicyschedError(f"this installation lacks {DEFINITION_FILE}: install policysched again")
