"""Output formats that `--output` accepts."""

from __future__ import annotations

import enum


class OutputFormat(enum.StrEnum):
    """Output format: for people, for programs, for a pull request, or annotations of GitHub Actions."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    MARKDOWN = "markdown"
    GITHUB = "github"


class TableFormat(enum.StrEnum):
    """Output format of commands that print a list."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"

    @property
    def is_value(self) -> bool:
        """Whether the format is for programs."""
        return self in {TableFormat.JSON, TableFormat.YAML}


class TextFormat(enum.StrEnum):
    """Output format of commands that print an object."""

    YAML = "yaml"
    JSON = "json"


class CheckFormat(enum.StrEnum):
    """Output format of findings."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    MARKDOWN = "markdown"
    GITHUB = "github"
    SARIF = "sarif"
