"""What the code promises of itself: words, documentation, and no clock or chance below the edge."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from policysched.plugins.registry import default_plugins
from tools.documents.markdown import ROOT, shown

PACKAGE = ROOT / "policysched"
MODULES = sorted(PACKAGE.rglob("*.py"))
TEXTS = sorted(
    path
    for folder in ("policysched", "tests", "bench", "docs", "tools", "examples", "crds", "deploy")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".md", ".yaml", ".lark", ".toml", ".sh", ".go", ".txt"}
) + [ROOT / name for name in ("README.md", "CHANGELOG.md", "Makefile", "Dockerfile", "pyproject.toml", ".ci/run")]
# Written so that the patterns do not fit themselves.
FORBIDDEN = re.compile(r"\bTO[D]O\b|\bFIX[M]E\b|\bXX[X]\b|NotImplemented[E]rror|/wor[k]/|/roo[t]/|/home/[a-z]+/")
BELOW_THE_EDGE = (
    "language",
    "cel",
    "model",
    "devices",
    "state",
    "framework",
    "rules",
    "plugins",
    "schedule",
    "sandbox",
)
LOWER = [path for path in MODULES if path.relative_to(PACKAGE).parts[0] in BELOW_THE_EDGE]
_CHANCE = ("random", "choice", "randint", "shuffle", "sample", "time", "monotonic", "sleep", "urandom")
CLOCKS = {"time", "socket", "requests", "secrets", "ssl", "urllib.request", "http.client"}
READS = re.compile(
    r"(?:datetime\.)?(?:datetime|date)\.(?:now|utcnow|today)|\btime\.\w+|\bos\.urandom|\buuid\.uuid[14]|\brandom\.(?!Random$)\w+"
)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", MODULES, ids=shown)
def test_modules_say_what_they_are_for(path: Path) -> None:
    assert ast.get_docstring(_tree(path))


def test_no_text_speaks_of_what_is_not_done_or_of_one_machine() -> None:
    assert len(TEXTS) > 100
    found = {shown(path): FORBIDDEN.findall(path.read_text("utf-8")) for path in TEXTS}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize("path", [path for path in MODULES if path.stem != "__main__"], ids=shown)
def test_what_a_module_exports_is_there(path: Path) -> None:
    module = importlib.import_module(_name(path))
    exported = getattr(module, "__all__", [])
    assert len(exported) == len(set(exported))
    assert [name for name in exported if getattr(module, name, None) is None] == []


@pytest.mark.parametrize("package", ["language", "framework", "model.objects", "plugins", "sandbox"])
def test_a_package_exports_all_that_it_takes_in(package: str) -> None:
    module = importlib.import_module(f"policysched.{package}")
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    names = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("policysched")
        for alias in node.names
    }
    assert {name for name in names if name not in module.__all__} == set()


def _imports(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def _reads(tree: ast.Module) -> set[str]:
    attributes = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    made = {"random.Random", "Random"} & called
    return {text for text in attributes if READS.fullmatch(text)} | made


@pytest.mark.parametrize("path", LOWER, ids=shown)
def test_below_the_edge_nothing_reads_a_clock_chance_or_the_network(path: Path) -> None:
    tree = _tree(path)
    assert _imports(tree) & CLOCKS == set()
    assert _imports(tree) & {f"{module}.{name}" for module in ("random", "time", "os") for name in _CHANCE} == set()
    assert _reads(tree) == set()


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from time import monotonic",
        "import socket",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.now()",
        "import random\nrandom.choice([1])",
        "import random\nrng = random.Random()",
        "import uuid\nuuid.uuid4()",
    ],
)
def test_a_module_that_reads_them_would_be_found(text: str) -> None:
    tree = ast.parse(text)
    assert (_imports(tree) & CLOCKS) | _reads(tree)


PORTS = sorted({type(enabled.plugin).__module__ for enabled in default_plugins()})


def test_plugins_of_kube_schedulers_names_are_in_modules_of_their_own() -> None:
    assert len(PORTS) >= 12
    assert all(name.startswith("policysched.plugins.") for name in PORTS)


@pytest.mark.parametrize("name", PORTS)
def test_a_ported_plugin_names_its_source(name: str) -> None:
    assert re.search(r"^Source: plugins/\w+", importlib.import_module(name).__doc__ or "", re.MULTILINE)
