"""Documents name only what exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from policysched.cli import make_app
from tests.meta.markdown import DOCUMENTS, LANGUAGE, ROOT, anchors, blocks, codes, links, prose, shown

CODE = sorted(
    path for folder in ("policysched", "tests", "bench", "crds", "examples") for path in (ROOT / folder).rglob("*.*")
    if path.suffix in {".py", ".yaml", ".md", ".lark"}
)  # fmt: skip
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
COMMANDS = get_command(make_app()).commands  # type: ignore[attr-defined]
_REFERENCE = re.compile(r"\bdocs/[\w/-]+\.md(?:#[\w-]+)?")


def _texts(path: Path) -> str:
    """Everything of a document that a reader may type."""
    typed = [block.text for block in blocks(path) if block.kind != "yaml"]
    return "\n".join([*codes(prose(path)), *typed])


def test_there_are_documents_and_a_readme_that_says_something() -> None:
    names = {shown(path) for path in DOCUMENTS}
    assert names >= {
        "README.md",
        "CHANGELOG.md",
        "docs/inside/architecture.md",
        "docs/inside/differences.md",
        "docs/reference/language.md",
    }
    assert len(prose(ROOT / "README.md").split()) > 100


def test_readme_leads_to_every_document() -> None:
    assert {shown(path) for path in (ROOT / "docs").rglob("*.md")} <= set(links(ROOT / "README.md"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_links_lead_somewhere(path: Path) -> None:
    for link in links(path):
        if re.match(r"https?://", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=shown)
def test_paths_that_are_named_exist(path: Path) -> None:
    tops = {one.name for one in ROOT.iterdir() if one.is_dir() and not one.name.startswith(".")}
    for code in codes(prose(path)):
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", code) and code.partition("/")[0] in tops:
            assert (ROOT / code).exists() or (ROOT / f"{code}.py").exists(), code


def _references() -> list[tuple[str, str]]:
    return sorted({(shown(path), found) for path in CODE for found in _REFERENCE.findall(path.read_text("utf-8"))})


def test_code_refers_to_the_reference_of_the_language() -> None:
    assert any(found.startswith(f"{shown(LANGUAGE)}#") for _, found in _references())


@pytest.mark.parametrize(("place", "reference"), _references())
def test_references_of_code_to_documents_resolve(place: str, reference: str) -> None:
    name, _, anchor = reference.partition("#")
    assert (ROOT / name).is_file(), f"{place}: {reference}"
    assert not anchor or anchor in anchors(ROOT / name), f"{place}: {reference}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_make_targets_that_are_named_exist(path: Path) -> None:
    assert set(re.findall(r"(?m)(?:^|`|\$ |&& )make ([a-z][\w-]*)", _texts(path))) <= TARGETS


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_commands_and_flags_that_are_named_exist(path: Path) -> None:
    for line in _texts(path).replace("\\\n", " ").splitlines():
        for name, rest in re.findall(r"(?:^|[$/] ?)policysched ([a-z][\w-]*)(.*)", line):
            assert name in COMMANDS, line
            known = {option for parameter in _command(name, rest).params for option in parameter.opts}
            assert set(re.findall(r"[ \[](--[a-z-]+)", rest)) <= known | {"--help"}, line


def _command(name: str, rest: str) -> Any:
    """Return a command, or the one of a group that the next word names."""
    found = COMMANDS[name]
    of_group: dict[str, Any] = getattr(found, "commands", {})
    first = rest.split(maxsplit=1)[:1]
    return of_group.get(first[0], found) if first else found


def test_every_command_but_version_is_documented() -> None:
    text = "\n".join(path.read_text("utf-8") for path in DOCUMENTS)
    assert [
        name for name in COMMANDS if not re.search(rf"(policysched|make) {name}\b", text) and name != "version"
    ] == []
