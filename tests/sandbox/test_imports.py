"""The sandbox's modules import each other one way: no module reaches itself."""

from __future__ import annotations

import ast
from pathlib import Path

import policysched.sandbox

ROOT = Path(str(policysched.sandbox.__file__)).parent
MODULES = {
    ".".join(("policysched.sandbox", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in MODULES else str(node.module))
    return found & set(MODULES)


def _reached(module: str, imports: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        new = imports[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def test_imports_make_no_circle() -> None:
    imports = {name: _imports(path) for name, path in MODULES.items()}
    assert "policysched.sandbox.storage.store" in _reached("policysched.sandbox.sandbox", imports)
    assert [name for name in MODULES if name in _reached(name, imports)] == []
