"""Builds the documentation site of docs/ with Zensical.

Zensical reads a copy of the pages: fences there have no words behind their language, which only tests read; links out
of docs/ lead to the repository; and pipes in the code of a table have no backslash, which only GitHub needs.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from tools.documents.markdown import ROOT

CONFIG: Final = ROOT / "mkdocs.yml"
BUILD: Final = ROOT / "build"
VERSIONS: Final = "versions.json"
"""Name of the file that lists the versions of the site and that the site's version selector reads."""
_FENCE: Final = re.compile(r"^( *```\w+) +.*$", re.M)
_ROW: Final = re.compile(r"^\|.*$", re.M)
_CODE: Final = re.compile(r"(`+).+?\1")
_LINK: Final = re.compile(r"(\]\()((?:\.\./)+[^)\s]*)(\))")


class SiteError(Exception):
    """Error: the site cannot be built; the message is the generator's."""


def build(target: Path, folder: Path = BUILD) -> None:
    """Build the site into an empty or missing folder.

    Args:
        target: The folder of the site.
        folder: Where the copy of the pages is made.

    Raises:
        SiteError: the generator reports a warning or an error.
    """
    copy, repository = folder / "pages", _repository()
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT / "docs", copy / "docs")
    for page in (copy / "docs").rglob("*.md"):
        name = page.relative_to(copy / "docs").as_posix()
        page.write_text(for_site(page.read_text("utf-8"), name, repository), "utf-8")
    shutil.copy(CONFIG, copy)
    command: list[str | Path] = [Path(sys.executable).parent / "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        report = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
        raise SiteError(report.partition("Traceback")[0].strip())
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(copy / "site", target)


def for_site(text: str, name: str, repository: str) -> str:
    """Return a page with links and paths as the site needs them.

    Args:
        text: The page.
        name: Its path in docs/.
        repository: The URL of the repository.
    """

    def out_of_docs(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(name), link[2]))
        return link[0] if target.startswith("docs/") else f"{link[1]}{repository}/blob/main/{target}{link[3]}"

    def unescaped(row: re.Match[str]) -> str:
        return _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])

    return _ROW.sub(unescaped, _LINK.sub(out_of_docs, _FENCE.sub(r"\1", text)))


def publish(site: Path, version: str) -> None:
    """Build the site of a release into the folder of all versions, beside the sites of other releases.

    The newest version is listed first and has the alias `latest`, to which the folder's own page leads.

    Args:
        site: The folder of all versions, such as a checkout of the branch that is served.
        version: The version, such as `0.1`.

    Raises:
        SiteError: the generator reports a warning or an error.
    """
    build(site / version)
    known = {one.name for one in site.iterdir() if (one / "index.html").is_file()} - {"latest"}
    newest, *older = sorted(known, key=_ordered, reverse=True)
    shutil.rmtree(site / "latest", ignore_errors=True)
    shutil.copytree(site / newest, site / "latest")
    listed: list[dict[str, Any]] = [{"version": newest, "title": newest, "aliases": ["latest"]}]
    listed += [{"version": one, "title": one, "aliases": []} for one in older]
    (site / VERSIONS).write_text(json.dumps(listed, indent=2) + "\n", "utf-8")
    (site / "index.html").write_text('<meta http-equiv="refresh" content="0; url=latest/">\n', "utf-8")


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _repository() -> str:
    """Return the URL of the repository from the site's configuration."""
    return str(yaml.load(CONFIG.read_text("utf-8"), yaml.BaseLoader)["repo_url"])  # noqa: S506 - BaseLoader creates only texts
