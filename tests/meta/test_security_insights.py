"""SECURITY-INSIGHTS.yml has the fields of the schema, version 2.0, and leads to files of the repository."""

from __future__ import annotations

import datetime
from typing import Any, Literal

import msgspec
import pytest
import yaml

from tools.documents.markdown import ROOT

TEXT = (ROOT / "SECURITY-INSIGHTS.yml").read_text("utf-8")
BLOB = "https://github.com/policysched/policysched/blob/main/"
Url = str


class Strict(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, kw_only=True):
    """An object of the schema; unknown fields are errors."""


class Contact(Strict):
    name: str
    primary: bool
    affiliation: str = ""
    email: str = ""
    social: str = ""


class Header(Strict):
    schema_version: str
    last_updated: datetime.date
    last_reviewed: datetime.date
    url: Url


class Reporting(Strict):
    reports_accepted: bool
    bug_bounty_available: bool
    policy: Url
    comment: str
    in_scope: list[str]
    out_of_scope: list[str]


class Listed(Strict):
    name: str
    url: Url
    comment: str


class Project(Strict):
    name: str
    homepage: Url
    administrators: list[Contact]
    documentation: dict[Literal["detailed-guide", "quickstart-guide", "code-of-conduct", "signature-verification"], Url]
    repositories: list[Listed]
    vulnerability_reporting: Reporting


class Assessment(Strict):
    comment: str
    evidence: Url
    date: datetime.date


class Tool(Strict):
    name: str
    type: Literal["fuzzing", "container", "secret", "SCA", "SAST", "other"]
    rulesets: list[str]
    integration: dict[Literal["adhoc", "ci", "release"], bool]
    results: dict[Literal["adhoc", "ci", "release"], Any]


class Security(Strict):
    assessments: dict[Literal["self"], Assessment]
    tools: list[Tool]


class Repository(Strict):
    url: Url
    status: Literal["active", "abandoned", "concept", "inactive", "moved", "suspended", "unsupported", "WIP"]
    accepts_change_request: bool
    accepts_automated_change_request: bool
    core_team: list[Contact]
    documentation: dict[Literal["contributing-guide", "security-policy"], Url]
    license: dict[Literal["url", "expression"], str]
    security: Security


class Insights(Strict):
    header: Header
    project: Project
    repository: Repository


def read(text: str) -> Insights:
    return msgspec.convert(yaml.safe_load(text), Insights)


def texts(value: Any) -> list[str]:
    """Return all texts below a value of YAML."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value] if isinstance(value, str) else [text for part in parts for text in texts(part)]


def test_file_fits_the_schema() -> None:
    found = read(TEXT)
    assert found.header.schema_version.startswith("2.0.")
    assert [one.primary for one in found.project.administrators] == [True]
    for tool in found.repository.security.tools:
        assert set(tool.integration) == {"adhoc", "ci", "release"}
    assert found.repository.license["expression"] == "Apache-2.0"


@pytest.mark.parametrize("old", ["status: WIP", "type: SCA", "primary: true", "last-updated: "])
def test_other_values_and_fields_are_noticed(old: str) -> None:
    assert old in TEXT
    with pytest.raises(msgspec.ValidationError):
        read(TEXT.replace(old, f"{old}x"))


def test_files_that_it_names_exist() -> None:
    named = [text.removeprefix(BLOB) for text in texts(yaml.safe_load(TEXT)) if text.startswith(BLOB)]
    assert len(named) >= 5
    assert [name for name in named if not (ROOT / name).is_file()] == []
