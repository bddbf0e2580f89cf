"""Documents pass their checks, and each check reports what is wrong with file and line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.pages.__main__ import first_difference
from tools.documents import checks, site
from tools.documents.checks import Problem
from tools.documents.markdown import DOCUMENTS, LANGUAGE, ROOT, anchors, prose, shown

CODE = sorted(
    path
    for folder in ("policysched", "tests", "bench", "crds", "deploy", "examples", "tools")
    for path in (ROOT / folder).rglob("*.*")
    if path.suffix in {".py", ".yaml", ".md", ".lark"} and path.is_file()
)
_REFERENCE = re.compile(r"(?<![\w/])docs/[\w/-]+\.md(?:#[\w-]+)?")
Check = Callable[[Iterable[Path]], Iterator[Problem]]


def test_there_are_documents_and_a_readme_that_says_something() -> None:
    names = {shown(path) for path in DOCUMENTS}
    assert names >= {"README.md", "CHANGELOG.md", "docs/inside/architecture.md", "docs/reference/language.md"}
    assert len(prose(ROOT / "README.md").split()) > 100


@pytest.mark.parametrize("check", [checks.broken_links, checks.commands, checks.spelling])
def test_documents_pass(check: Check) -> None:
    assert [*map(str, check(DOCUMENTS))] == []


@pytest.mark.parametrize("check", [checks.heads, checks.paths_in_code, checks.words])
def test_pages_pass(check: Check) -> None:
    assert [*map(str, check(checks.pages()))] == []


def test_navigation_names_every_page() -> None:
    assert [*map(str, checks.navigation(checks.pages(), checks.NAVIGATION))] == []


def test_site_builds(tmp_path: Path) -> None:
    site.build(tmp_path / "site", tmp_path)
    sections = {"start", "write", "run", "extend", "reference", "inside"}
    start = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert {name for name in sections if f'href="{name}/' in start} == sections
    assert (tmp_path / "site" / "search.json").stat().st_size > 100_000


def test_versions_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(target: Path) -> None:
        target.mkdir(parents=True)
        (target / "index.html").write_text(target.name)

    monkeypatch.setattr(site, "build", build)
    for version in ("0.9", "0.10", "0.2"):
        site.publish(tmp_path, version)
    listed = yaml.safe_load((tmp_path / site.VERSIONS).read_text())
    assert [one["version"] for one in listed] == ["0.10", "0.9", "0.2"]
    assert listed[0]["aliases"] == ["latest"]
    assert (tmp_path / "latest" / "index.html").read_text() == "0.10"


@pytest.mark.parametrize(
    ("check", "text", "line", "said"),
    [
        (checks.heads, "# Title\n", 1, "no description"),
        (checks.heads, f"---\ndescription: {'a' * 200}\n---\n# Title\n", 2, "200 characters"),
        (checks.heads, "---\ndescription: a: b\n---\n# Title\n", 1, "not YAML: mapping values are not allowed here"),
        (checks.heads, "---\ndescription: one\n---\ntext\n", 1, "0 titles"),
        (checks.heads, "---\ndescription: one\n---\n# One\n\n# Two\n", 6, "2 titles"),
        (checks.broken_links, "# A\n\n[b](missing.md)\n", 3, "`missing.md` leads to no file"),
        (checks.broken_links, "# A\n\n[b](#other)\n", 3, "`#other` leads to no heading"),
        (checks.commands, "# A\n\n`policysched dry-run --clutser x`\n", 3, "no flag `--clutser`"),
        (checks.commands, "# A\n\n```sh usage\na\npolicysched check \\\n  --nothing\n```\n", 5, "no flag `--nothing`"),
        (checks.commands, "# A\n`policysched dryrun`\n", 2, "no command `policysched dryrun`"),
        (checks.commands, "# A\n`make everything`\n", 2, "no `make everything`"),
        (checks.paths_in_code, "# A\n`policysched/nothing.py`\n", 2, "no `policysched/nothing.py`"),
        (checks.spelling, "# A\n\nA sentance.\n", 3, "sentance ==> sentence"),
    ],
)
def test_a_check_names_file_and_line(check: Check, text: str, line: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(text)
    [problem] = check([path])
    assert str(problem).startswith(f"{path}:{line}: ")
    assert said in problem.text


def test_an_orphan_page_and_a_missing_page_are_named(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    orphan = tmp_path / "docs" / "orphan.md"
    orphan.write_text("# Orphan\n")
    config = tmp_path / "mkdocs.yml"
    config.write_text("nav:\n  - Home: index.md\n")
    missing, other = checks.navigation([orphan], config)
    assert (missing.path, missing.line) == (config, 2)
    assert "`index.md`, which does not exist" in missing.text
    assert other.path == orphan


def test_a_page_over_its_budget_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "BUDGETS", {"README.md": 10})
    monkeypatch.setattr(checks, "ALL_WORDS", 1_000)
    assert [one.text.partition(" words, ")[2] for one in checks.words(checks.pages())] == [
        "10 at most",
        "1,000 at most",
    ]


def test_a_listing_that_differs_is_named_with_its_line() -> None:
    assert first_difference("a\nb\nc\n", "a\nx\nc\n") == 2
    assert first_difference("a\n", "a\nb\n") == 1


def test_pages_of_the_site_lead_to_the_repository() -> None:
    text = "```console measured=2026-01-01\n$ a\n```\n[x](../../examples/README.md) [y](../run/install.md)\n"
    assert site.for_site(text, "start/page.md", "https://example.com/r") == (
        "```console\n$ a\n```\n[x](https://example.com/r/blob/main/examples/README.md) [y](../run/install.md)\n"
    )


def test_pipes_in_code_of_tables_have_no_backslash_on_the_site() -> None:
    assert (
        site.for_site("| `a \\|\\| b` | c \\| d |\n`e \\| f`\n", "page.md", "r")
        == "| `a || b` | c \\| d |\n`e \\| f`\n"
    )


def _references() -> list[tuple[str, str]]:
    return sorted({(shown(path), found) for path in CODE for found in _REFERENCE.findall(path.read_text("utf-8"))})


def test_code_refers_to_the_reference_of_the_language() -> None:
    assert any(found.startswith(f"{shown(LANGUAGE)}#") for _, found in _references())


@pytest.mark.parametrize(("place", "reference"), _references())
def test_references_of_code_to_documents_resolve(place: str, reference: str) -> None:
    name, _, anchor = reference.partition("#")
    assert (ROOT / name).is_file(), f"{place}: {reference}"
    assert not anchor or anchor in anchors(ROOT / name), f"{place}: {reference}"


def test_every_command_is_documented() -> None:
    text = "\n".join(path.read_text("utf-8") for path in checks.pages())
    assert [name for name in checks.known_commands() if not re.search(rf"policysched {name}\b", text)] == []
