"""Nothing is swallowed: a handler of all exceptions raises one, logs, or uses the exception.

A mistake of ours that a handler takes without a word would show as slowness or as a wrong answer alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.meta.test_circles import sources

BROAD = {"Exception", "BaseException"}
LOGGERS = {"log", "logging", "logger"}
SILENT = {
    "policysched.framework.out_of_tree.answers._text": "a reason that cannot be told is told by the name of its type",
    "policysched.framework.out_of_tree.worker_threads.plain": "so is an exception that cannot be told",
}
"""Functions whose handlers may keep silent, with the reason."""


def broad_handlers(module: str, text: str) -> Iterator[tuple[str, ast.ExceptHandler]]:
    """Every handler of all exceptions, with the name of its function."""

    def walk(node: ast.AST, name: str) -> Iterator[tuple[str, ast.ExceptHandler]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ExceptHandler) and is_broad(child.type):
                yield name, child
            within = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                within = f"{name}.{child.name}"
            yield from walk(child, within)

    yield from walk(ast.parse(text), module)


def is_broad(caught: ast.expr | None) -> bool:
    """Whether a handler catches whatever there may be."""
    if caught is None:
        return True
    return any(isinstance(node, ast.Name) and node.id in BROAD for node in ast.walk(caught))


def tells(handler: ast.ExceptHandler) -> bool:
    """Whether a handler raises an exception, logs, or uses the one that it caught."""
    return any(
        isinstance(node, ast.Raise) or (isinstance(node, ast.Name) and node.id in {handler.name, *LOGGERS})
        for line in handler.body
        for node in ast.walk(line)
    )


def silenced(module: str, text: str) -> Iterator[str]:
    """Every place where `contextlib.suppress` keeps all exceptions silent."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress") and any(map(is_broad, node.args)):
            yield f"{module}:{node.lineno}"


def test_handlers_of_all_exceptions_raise_log_or_use_the_exception() -> None:
    found = [
        (name, tells(handler)) for module, text in sources().items() for name, handler in broad_handlers(module, text)
    ]
    assert len(found) > len(SILENT)
    assert {name for name, telling in found if not telling} == set(SILENT)
    assert not [one for module, text in sources().items() for one in silenced(module, text)]


def test_handlers_that_keep_silent_are_found() -> None:
    text = """
def swallows():
    try:
        act()
    except (ValueError, Exception) as error:
        return None

class Thing:
    def swallows(self):
        try:
            act()
        except:
            pass

def tells():
    try:
        act()
    except Exception as error:
        return str(error)
    except BaseException:
        log.exception("it failed")
    try:
        act()
    except Exception:
        raise RuntimeError from None
    except ValueError:
        pass
"""
    found = [name for name, handler in broad_handlers("m", text) if not tells(handler)]
    assert found == ["m.swallows", "m.Thing.swallows"]
    assert [*silenced("m", "with contextlib.suppress(OSError, Exception):\n    act()\n")] == ["m:1"]
