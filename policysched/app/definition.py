"""The CustomResourceDefinition of policies in this version, as text."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from policysched.errors import PolicyschedError

DEFINITION_FILE: Final = "schedulingpolicies.yaml"


def definition_text() -> str:
    """Return the CustomResourceDefinition as YAML.

    Raises:
        PolicyschedError: the installation lacks the file.
    """
    package = resources.files("policysched")
    # A wheel contains the file as data; in an editable installation it is next to the package.
    for place in (package / "data" / DEFINITION_FILE, Path(str(package)).parent / "crds" / DEFINITION_FILE):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise PolicyschedError(f"this installation lacks {DEFINITION_FILE}: install policysched again")
