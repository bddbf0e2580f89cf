"""Checks of the documents: titles, links, navigation, commands and flags, word budgets, spelling.

Every check yields problems; no problem means that the documents pass.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from typer.main import get_command

from policysched.cli import make_app
from tools.documents.markdown import (
    DOCUMENTS,
    ROOT,
    anchors,
    blocks,
    codes,
    numbered_links,
    prose_lines,
    shown,
)
from tools.reference import GENERATED

DOCS: Final = ROOT / "docs"
NAVIGATION: Final = ROOT / "mkdocs.yml"
LONGEST_DESCRIPTION: Final = 160
"""Longest description of a page; search engines cut longer descriptions. Units: characters."""
BUDGETS: Final = {
    "README.md": 900,
    "docs/inside/reliability.md": 2_500,
    "docs/inside/performance.md": 3_000,
    "docs/inside/threat-model.md": 900,
    "docs/run/platforms.md": 900,
}
"""Largest number of words of single documents, by path; more is a problem."""
ALL_WORDS: Final = 48_000
"""Largest number of words of all pages in docs/ that are not generated; more is a problem."""
_TARGET: Final = re.compile(r"^([a-z][\w-]*):", re.M)
_MAKE: Final = re.compile(r"(?:^|`|\$ |&& )make ([a-z][\w-]*)")
_COMMAND: Final = re.compile(r"(?:^|[$/`(] ?)policysched ([a-z][\w-]*)(.*)")
_FLAG: Final = re.compile(r"[ \[](--[a-z-]+)")
_PATH: Final = re.compile(r"[\w.-]+(/[\w.-]+)+/?")


class Problem(NamedTuple):
    """A problem in a document, with the document's file and the line."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{shown(self.path)}:{self.line}: {self.text}"


def heads(paths: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for each page without a description, without a title or with several titles."""
    for path in paths:
        lines = path.read_text("utf-8").splitlines()
        try:
            description = _front_matter(lines).get("description")
        except yaml.YAMLError as error:
            yield Problem(path, 1, f"the front matter is not YAML: {str(error).splitlines()[0]}; quote the description")
            continue
        if not isinstance(description, str) or not description:
            yield Problem(path, 1, "the page has no description: add `description: …` between two lines `---`")
        elif len(description) > LONGEST_DESCRIPTION:
            yield Problem(path, 2, f"the description has {len(description)} characters, {LONGEST_DESCRIPTION} at most")
        titles = [one for one in prose_lines(path) if one.text.startswith("# ")]
        if len(titles) != 1:
            line = titles[1].number if titles else 1
            yield Problem(path, line, f"the page has {len(titles)} titles (`# …`), not one")


def broken_links(paths: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for each relative link that does not lead to an existing file and heading."""
    for path in paths:
        for line, link in numbered_links(path):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = path.parent / name if name else path
            if not target.exists():
                yield Problem(path, line, f"the link `{link}` leads to no file")
            elif anchor and anchor not in anchors(target):
                yield Problem(path, line, f"the link `{link}` leads to no heading")


def navigation(pages: Iterable[Path], config: Path) -> Iterator[Problem]:
    """Yield a problem for each page that the navigation lacks, and for each entry without a page."""
    entries = {
        match[1]: number
        for number, line in enumerate(config.read_text("utf-8").splitlines(), 1)
        if (match := re.search(r"([\w/-]+\.md)\s*$", line))
    }
    folder = config.parent / "docs"
    for name, number in entries.items():
        if not (folder / name).is_file():
            yield Problem(config, number, f"the navigation names `{name}`, which does not exist")
    for page in pages:
        if str(page.relative_to(folder)) not in entries:
            yield Problem(page, 1, f"the navigation in {config.name} does not name the page")


def commands(paths: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for each command, flag or make target in documents that does not exist."""
    known = known_commands()
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text("utf-8")))
    for path in paths:
        for line, text in _typed(path):
            for target in _MAKE.findall(text):
                if target not in targets:
                    yield Problem(path, line, f"there is no `make {target}`")
            for name, rest in _COMMAND.findall(text):
                if name not in known:
                    yield Problem(path, line, f"there is no command `policysched {name}`")
                    continue
                flags = {flag for parameter in _command(known[name], rest).params for flag in parameter.opts}
                for flag in sorted(set(_FLAG.findall(rest)) - flags - {"--help"}):
                    yield Problem(path, line, f"`policysched {name}` has no flag `{flag}`")


def paths_in_code(paths: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for each file of the repository that documents name and that does not exist."""
    tops = {one.name for one in ROOT.iterdir() if one.is_dir() and not one.name.startswith(".")}
    tops -= {"build", "dist"}
    for path in paths:
        for one in prose_lines(path):
            for code in codes(one.text):
                known = not _PATH.fullmatch(code) or code.partition("/")[0] not in tops
                if not known and not (ROOT / code).exists() and not (ROOT / f"{code}.py").exists():
                    yield Problem(path, one.number, f"there is no `{code}`")


def words(pages: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for each document with more words than its budget, and for the total of all pages."""
    for name, most in BUDGETS.items():
        count = words_of(ROOT / name)
        if count > most:
            yield Problem(ROOT / name, 1, f"the document has {count:,} words, {most:,} at most")
    written = sum(words_of(path) for path in pages if path not in GENERATED)
    if written > ALL_WORDS:
        yield Problem(DOCS, 1, f"the pages that are not generated have {written:,} words, {ALL_WORDS:,} at most")


def words_of(path: Path) -> int:
    """Count the words of a document, listings included."""
    return len(path.read_text("utf-8").split())


def spelling(paths: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for each spelling error that codespell finds."""
    command = [sys.executable, "-m", "codespell_lib", *map(str, paths)]
    for line in subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout.splitlines():
        name, number, text = line.split(":", 2)
        yield Problem(Path(name), int(number), f"spelling:{text}")


def pages() -> list[Path]:
    """Return the pages of the documentation site."""
    return sorted(DOCS.rglob("*.md"))


def all_problems() -> Iterator[Problem]:
    """Yield the problems of all documents."""
    found = pages()
    checks: tuple[Callable[[list[Path]], Iterator[Problem]], ...] = (broken_links, commands, spelling)
    for check in checks:
        yield from check(DOCUMENTS)
    yield from heads(found)
    yield from navigation(found, NAVIGATION)
    yield from paths_in_code([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *found])
    yield from words(found)


def known_commands() -> dict[str, Any]:
    """Return the commands of `policysched` by their names."""
    found: dict[str, Any] = get_command(make_app()).commands  # type: ignore[attr-defined]
    return found


def _front_matter(lines: list[str]) -> dict[str, Any]:
    """Return the metadata of a page; empty if the page has none."""
    if not lines or lines[0] != "---" or "---" not in lines[1:]:
        return {}
    found = yaml.safe_load("\n".join(lines[1 : lines.index("---", 1)]))
    return found if isinstance(found, dict) else {}


def _typed(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line number and text of each command line in a document; continued lines are joined."""
    for one in prose_lines(path):
        yield from ((one.number, code) for code in codes(one.text))
    for block in blocks(path):
        if block.kind == "yaml":
            continue
        started: list[str] = []
        for number, line in enumerate(block.text.splitlines(), block.line + 1):
            started.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                yield number - len(started) + 1, " ".join(started)
                started = []


def _command(command: Any, rest: str) -> Any:
    """Return a command; for a group of commands, return the subcommand that the next word names."""
    of_group: dict[str, Any] = getattr(command, "commands", {})
    first = rest.split(maxsplit=1)[:1]
    return of_group.get(first[0], command) if first else command
