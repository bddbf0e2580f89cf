"""`function_of`: imports the module of a command when the command runs.

A command has two parts. Its flags are a class in `policysched.cli.flags`, which `--help` needs. Its work is a function
with these flags as its argument, in a module of `policysched.cli.commands`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def function_of(section: str, module: str, function: str) -> Callable[..., Any]:
    """Import the module of a command and return one of its functions."""
    found: Callable[..., Any] = getattr(import_module(f"policysched.cli.commands.{section}.{module}"), function)
    return found
