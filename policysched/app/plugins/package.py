"""Creation of the package of a new plugin: a module, a passing test, a configuration, a README.

The new plugin works: it matches a label of pods with the same label of nodes. Each chosen extension point adds a method
and a test.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from policysched.app.configuration.profiles import registry_with
from policysched.app.files.output import folder_problem
from policysched.app.plugins.templates import CLUSTER, CONFIG, MODULE, POD, PROJECT, README, TEMPLATES, TEST
from policysched.errors import UsageError

DEFAULT_POINTS: Final = ("filter", "score")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)*")
_LONGEST_NAME: Final = 63
_LONGEST_LINE: Final = 120
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class NewPackage:
    """The package of a new plugin after its files are written: folder, files and next steps."""

    folder: Path
    files: tuple[str, ...]
    next_steps: tuple[str, ...]
    """Commands for the user to run next, with comments."""


def new_package(name: str, points: Iterable[str] = DEFAULT_POINTS, parent: Path = Path()) -> NewPackage:
    """Write the package of a plugin into a new folder of its name.

    Args:
        name: Name of the plugin in configurations.
        points: Extension points, by kube-scheduler's names.
        parent: Folder in which the new folder is created.

    Raises:
        UsageError: the folder exists or cannot be created, or the name or a point is invalid.
    """
    chosen = _chosen(points)
    module, folder = _module_name(name), parent / name
    if folder.exists():
        raise UsageError(f"{folder} already exists; nothing was written")
    files = _files(name, module, chosen)
    try:
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(folder_problem(folder, error)) from error
    return NewPackage(folder, tuple(files), (f"cd {folder}", *_STEPS))


_STEPS: Final = (
    "pip install --editable '.[test]'      # in the environment of policysched",
    "python -m pytest                      # run the tests",
    "policysched plugins                   # list the plugin",
    "policysched dry-run --config scheduler-config.yaml --cluster cluster.yaml --pod pod.yaml",
    "policysched run --config scheduler-config.yaml",
)


def _chosen(points: Iterable[str]) -> list[str]:
    """Return the chosen points in the templates' order; case and underscores are ignored."""
    known = {point.lower(): point for point in TEMPLATES}
    wanted = set()
    for point in points:
        found = known.get(point.replace("_", "").lower())
        if found is None:
            raise UsageError(f'unknown extension point "{point}"; use {", ".join(TEMPLATES)}')
        wanted.add(found)
    if not wanted:
        raise UsageError(f"no extension point given; use {', '.join(TEMPLATES)}")
    return [point for point in TEMPLATES if point in wanted]


def _module_name(name: str) -> str:
    """Return the name of a plugin's module.

    Raises:
        UsageError: the plugin's name is invalid.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise UsageError(f'invalid plugin name "{name}": use letters and digits, joined by -, _ or .')
    if name in registry_with():
        raise UsageError(f'plugin "{name}" already exists')
    module = "_".join(_words(name)).lower()
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module == "policysched":
        raise UsageError(f'invalid plugin name "{name}": {module} is a Python module or keyword')
    return module


def _words(name: str) -> list[str]:
    return _WORD.findall(name)


def _files(name: str, module: str, points: list[str]) -> dict[str, str]:
    words = _words(name)
    klass = "".join(word[:1].upper() + word[1:] for word in words)
    methods = "".join(TEMPLATES[point].method for point in points)
    bases = [f"{point[0].upper()}{point[1:]}Methods" for point in points]
    tests = "".join(TEMPLATES[point].test for point in points)
    imports = {one for point in points for one in TEMPLATES[point].imports.split()} | {"PluginHandle", *bases}
    distribution = "-".join(words).lower()
    given = {
        "name": name,
        "module": module,
        "klass": klass,
        "bases": _bases(klass, bases),
        "distribution": distribution,
        "scheduler": f"{distribution}-scheduler",
        "sequence": "from collections.abc import Sequence\n" if "Sequence[" in methods else "",
        "imports": _import("policysched.plugin", imports),
        "fields": "".join(TEMPLATES[point].fields for point in points),
        "methods": methods,
        "listed": "".join(Template(TEMPLATES[point].config).substitute(name=name) for point in points),
        "steps": "\n".join(_STEPS),
    }
    tools = {"make_node", "make_pod", "scheduling"} | ({"decide"} if "decide(" in tests else set())
    tested = {**given, "imports": _import("policysched.testing", tools), "tests": Template(tests).substitute(given)}
    return {
        "pyproject.toml": PROJECT.substitute(given),
        "README.md": README.substitute(given),
        f"{module}.py": MODULE.substitute(given),
        f"test_{module}.py": TEST.substitute(tested),
        "scheduler-config.yaml": CONFIG.substitute(given),
        "cluster.yaml": CLUSTER,
        "pod.yaml": POD.substitute(given),
    }


def _bases(klass: str, names: list[str]) -> str:
    """Return the base classes of a class, one per line if there are many."""
    line = f"({', '.join(names)})"
    if len(f"class {klass}{line}:") <= _LONGEST_LINE:
        return line
    return f"(\n{''.join(f'    {name},{chr(10)}' for name in names)})"


def _import(module: str, names: set[str]) -> str:
    """Return an import statement in linters' format: constants, classes, functions; one per line if there are many."""
    ordered = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name.lower()))
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= _LONGEST_LINE:
        return line
    return f"from {module} import (\n{''.join(f'    {name},{chr(10)}' for name in ordered)})"
