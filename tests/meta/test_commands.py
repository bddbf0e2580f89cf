"""What docs/commands.md shows is what the commands print."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from policysched.cli import execute
from tests.meta.markdown import ROOT, Block, blocks, codes
from tests.meta.test_documents import COMMANDS

DOCUMENT = ROOT / "docs" / "commands.md"
BLOCKS = blocks(DOCUMENT)
FILES = {
    block.text.splitlines()[0].removeprefix("# "): block.text for block in BLOCKS if block.kind in {"yaml", "json"}
}
"""Each block of YAML is a file; its first line says which."""


def _steps(block: Block) -> list[tuple[str, str]]:
    """The commands of a block, each with what follows it."""
    found: list[tuple[str, str]] = []
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].strip(), ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def test_every_command_is_in_the_table() -> None:
    first = DOCUMENT.read_text("utf-8").split("\n## ")[0]
    rows = [line.split("|") for line in first.splitlines() if line.startswith("| `")]
    assert {codes(row[1])[0].removeprefix("policysched ") for row in rows} == set(COMMANDS)


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.kind == "console"], ids=lambda one: f"line-{one.line}")
def test_commands_print_what_is_shown(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    for line, expected in _steps(block):
        name, *arguments = shlex.split(line)
        assert name == "policysched"
        execute(arguments)
        captured = capfd.readouterr()
        assert _lines(captured.out + captured.err) == _lines(expected), line


def _lines(text: str) -> list[str]:
    """Lines without the space that fills up tables."""
    return [line.rstrip() for line in text.splitlines()]


def test_the_readme_shows_what_dry_run_prints(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    [text] = [one.text for one in blocks(ROOT / "README.md") if one.text.startswith("$ policysched dry-run")]
    first, *rest = text.replace("\\\n", "").splitlines()
    monkeypatch.chdir(ROOT)
    execute(shlex.split(first)[2:])
    captured = capfd.readouterr()
    assert _lines(captured.err + captured.out) == rest


def test_there_are_examples_and_files() -> None:
    assert sum(one.kind == "console" for one in BLOCKS) >= 1
    assert FILES
    assert all(Path(name).suffix in {".yaml", ".json"} for name in FILES)
