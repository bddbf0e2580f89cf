"""Checks that all places of the tree name one version before a release is built."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class ReleaseError(Exception):
    """Error: the tree cannot be released as it is; the message has the reason."""


def check_versions(root: Path, tag: str = "") -> str:
    """Return the version of the tree; raise an error if places in the tree name different versions.

    Args:
        root: the tree.
        tag: the tag of a release; a dry run has none, and its changelog needs no date.

    Raises:
        ReleaseError: places name different versions, or the changelog has no dated section for a tagged version.
    """
    version: str = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    chart = yaml.safe_load((root / "deploy" / "chart" / "Chart.yaml").read_text("utf-8"))
    named = {
        "deploy/chart/Chart.yaml: version": chart["version"],
        "deploy/chart/Chart.yaml: appVersion": chart["appVersion"],
    }
    for path in sorted((root / "deploy").rglob("*.yaml")):
        for image in re.findall(r"image: policysched:(\S+)", path.read_text("utf-8")):
            named[f"{path.relative_to(root)}: image"] = image
    if tag:
        named["the tag"] = tag.removeprefix("v") if tag.startswith("v") else tag
    for place, found in named.items():
        if found != version:
            raise ReleaseError(f'{place} is "{found}", but the version in pyproject.toml is "{version}"')
    state, _ = changelog_section(root, version)
    if tag and not _DATE.fullmatch(state):
        raise ReleaseError(f'CHANGELOG.md: version {version} has no date but "{state}"; write the day of the release')
    return version


def changelog_section(root: Path, version: str) -> tuple[str, str]:
    """Return the date in the heading of a version's changelog section, and the section's text.

    Raises:
        ReleaseError: the changelog has no section for the version.
    """
    text = (root / "CHANGELOG.md").read_text("utf-8")
    found = re.search(rf"^## \[{re.escape(version)}\] - ([^\n]*)\n(.*?)(?=^## |^\[[^\]]+\]: |\Z)", text, re.M | re.S)
    if not found:
        raise ReleaseError(f"CHANGELOG.md has no section `## [{version}] - DATE`")
    return found[1], found[2].strip() + "\n"
