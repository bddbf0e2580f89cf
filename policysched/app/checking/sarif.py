"""Findings as a SARIF 2.1.0 log, which code scanning services read.

Source: OASIS Standard "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from policysched.app.checking.files import CheckedPolicies
from policysched.app.checking.findings import Finding
from policysched.language import message_table
from policysched.reading.files import STDIN, shown
from policysched.visible import cut

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
REPOSITORY: Final = "https://github.com/policysched/policysched"
_PAGE: Final = f"{REPOSITORY}/blob/main/docs/reference/errors.md"


def sarif_log(found: CheckedPolicies) -> dict[str, Any]:
    """Return the findings and the unreadable files as a log with one run."""
    codes = sorted({one.code for one in found.findings})
    driver = {
        "name": "policysched",
        "version": version("policysched"),
        "informationUri": REPOSITORY,
        "rules": [_rule(code) for code in codes],
    }
    problems = [{"level": "error", "message": {"text": cut(str(one))}} for one in found.problems]
    invocation = {"executionSuccessful": not problems, "toolExecutionNotifications": problems}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(one, codes) for one in found.findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    described = message_table().get(code)
    if described is None:
        return {"id": code}
    help_uri = f"{_PAGE}#{code.lower()}"
    return {"id": code, "shortDescription": {"text": described.title}, "helpUri": help_uri}


def _result(one: Finding, codes: list[str]) -> dict[str, Any]:
    text = cut(one.message) + (f"\nhelp: {cut(one.help)}" if one.help else "")
    return {
        "ruleId": one.code,
        "ruleIndex": codes.index(one.code),
        "level": one.severity,
        "message": {"text": text},
        "locations": [_location(one)],
    }


def _location(one: Finding) -> dict[str, Any]:
    logical = {"fullyQualifiedName": f"{cut(one.policy)} {cut(one.field)}".strip()}
    place, document = one.place(), one.document
    if document is None or place is None or document.file == shown(STDIN):
        return {"logicalLocations": [logical]}
    path = PurePath(document.file)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    region = {"startLine": place.line, "startColumn": place.column, "endColumn": one.end(place)}
    physical = {"artifactLocation": {"uri": uri}, "region": region}
    return {"physicalLocation": physical, "logicalLocations": [logical]}
