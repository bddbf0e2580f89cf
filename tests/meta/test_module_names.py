"""What docstrings say of modules: a module, package or name that stands there in code exists."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from policysched.cli import make_app
from tests.meta.test_architecture import PACKAGE, ROOMS, found
from tools.documents.markdown import ROOT, shown

PACKAGES = sorted(PACKAGE.rglob("__init__.py"))
MODULES = sorted(PACKAGE.rglob("*.py"))
COMMANDS = {command.callback.__name__ for command in make_app().registered_commands if command.callback}
_CODE = re.compile(r"`([^`\s]+)`")
_PLAIN = re.compile(r"[a-z][a-z_]*(?:\.[a-z][a-z_]*)*")
_DOTTED = re.compile(rf"(?:policysched\.[a-z]|(?:{'|'.join(ROOMS)})\.[a-z])[\w.]*")


def docstrings(path: Path) -> list[str]:
    """The docstrings of a module, its classes and its functions."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(path.read_text("utf-8"))
    return [text for node in ast.walk(tree) if isinstance(node, kinds) and (text := ast.get_docstring(node))]


def is_there(package: Path, name: str) -> bool:
    """Whether a package has a module, a package or something else of a name, or a name says it from the top."""
    place = package / name.replace(".", "/")
    if place.is_dir() or place.with_suffix(".py").is_file():
        return True
    module = importlib.import_module(".".join(package.relative_to(ROOT).parts))
    return hasattr(module, name) or found(name) is not None


@pytest.mark.parametrize("path", PACKAGES, ids=shown)
def test_what_a_package_says_that_it_holds_is_there(path: Path) -> None:
    named = set(_CODE.findall((docstrings(path) or [""])[0]))
    plain = {name for name in named if _PLAIN.fullmatch(name)} - COMMANDS - {"policysched"}
    assert sorted(name for name in plain if not is_there(path.parent, name)) == []


@pytest.mark.parametrize("path", MODULES, ids=shown)
def test_modules_that_docstrings_name_are_there(path: Path) -> None:
    named = {name for text in docstrings(path) for name in _CODE.findall(text) if _DOTTED.fullmatch(name)}
    assert sorted(name for name in named if found(name) is None) == []


def test_a_name_that_is_not_there_is_found() -> None:
    assert not is_there(PACKAGE / "state", "sums")
    assert is_there(PACKAGE / "state", "domain_sums")
    assert is_there(PACKAGE / "model", "policysched.state.cluster")
    assert not is_there(PACKAGE / "model", "policysched.state.sums")
