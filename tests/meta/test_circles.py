"""No two modules import each other, by whatever way.

Imports at the top of a module count, those for types alone too: what needs another's types belongs above it. Imports in
functions do not: they are made late on purpose, to start quickly. A package's `__init__` is a module like any other.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tools.documents.markdown import ROOT

PACKAGE = ROOT / "policysched"


def sources() -> dict[str, str]:
    """The text of every module by its name."""
    return {name_of(path): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST) -> Iterator[str]:
    """Every name that is imported outside of functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from imported(node)


def graph(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Which modules each one imports: a name is taken from the longest module that it begins with."""
    return {
        module: {found for name in imported(ast.parse(text)) if (found := _module(name, texts))} - {module}
        for module, text in texts.items()
    }


def _module(name: str, known: Collection[str]) -> str:
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


def reached(edges: Mapping[str, set[str]], start: str) -> set[str]:
    """The modules that one imports, directly or through others."""
    found: set[str] = set()
    waiting = list(edges[start])
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting.extend(edges[module])
    return found


def circles(edges: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """The sets of modules that all reach each other: the strongly connected components of more than one."""
    reach = {module: reached(edges, module) for module in edges}
    return {frozenset(other for other in reach[module] if module in reach[other]) for module in edges} - {frozenset()}


def pictures(edges: Mapping[str, set[str]]) -> dict[str, dict[str, set[str]]]:
    """Every package as a picture: its modules and folders, and which of them import which."""
    drawn: dict[str, dict[str, set[str]]] = {}
    for module, imports in edges.items():
        for other in imports:
            one, two = module.split("."), other.split(".")
            shared = next((place for place, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0)
            if shared:
                picture = drawn.setdefault(".".join(one[:shared]), {})
                picture.setdefault(one[shared], set()).add(two[shared])
                picture.setdefault(two[shared], set())
    return drawn


def test_modules_import_each_other_in_no_circle() -> None:
    assert circles(graph(sources())) == set()


def test_folders_import_each_other_in_no_circle() -> None:
    found = pictures(graph(sources()))
    assert {"policysched", "policysched.language", "policysched.rules"} <= found.keys()
    for package, edges in found.items():
        assert circles(edges) == set(), package


def test_a_circle_over_several_modules_would_be_found() -> None:
    texts = {
        "p": "from p.a import f",
        "p.a": "import p.b",
        "p.b": "if TYPE_CHECKING:\n    from p import c",
        "p.c": "from p.a import T\ndef late():\n    import p.d",
        "p.d": "from p.c import x",
        "p.e": "import os\nfrom p import d",
    }
    assert circles(graph(texts)) == {frozenset({"p.a", "p.b", "p.c"})}


def test_a_circle_of_folders_would_be_found() -> None:
    texts = {"p": "", "p.a.x": "from p.b import y", "p.a.z": "", "p.b.y": "", "p.b.w": "from p.a.z import one"}
    assert circles(graph(texts)) == set()
    assert circles(pictures(graph(texts | {"p.a.x": "from p.b.y import one"}))["p"]) == {frozenset({"a", "b"})}
