"""Discovery of out-of-tree plugins: entry points of installed distributions, and `--plugin`.

An entry point of the group `policysched.plugins` has the plugin's name and the location of its factory. It is imported
when a configuration enables the plugin, so a broken one does not affect other users. Names of default plugins are
reserved. A name in two distributions is rejected when it is enabled.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from policysched.app.configuration.profiles import registry_with
from policysched.app.plugins.factories import CheckedFactory, shown_error, stated_name
from policysched.errors import UsageError
from policysched.framework.registry import PluginRegistry

GROUP: Final = "policysched.plugins"
"""Name of the entry point group in which distributions register out-of-tree plugins."""
_FLAG: Final = re.compile(r"(?:(?P<name>[^=:]+)=)?(?P<module>[^=]+):(?P<factory>[A-Za-z_][\w.]*)")


@dataclass(frozen=True, slots=True)
class FoundPlugins:
    """The discovered out-of-tree plugins, and problems of entry points."""

    registry: PluginRegistry
    problems: tuple[str, ...]
    """Entry points that cannot be used, one line each."""


@dataclass(frozen=True, slots=True)
class EntryPointFactory:
    """The factory of an entry point, imported when a plugin is created.

    Raises:
        UsageError: the import fails, or the object is not a factory; the text has distribution and entry point.
    """

    entry: EntryPoint

    def __call__(self, args: Any, handle: Any) -> Any:
        """Create the plugin."""
        return self.checked()(args, handle)

    def checked(self) -> CheckedFactory:
        """Import the factory and return it."""
        try:
            factory = self.entry.load()
        except (Exception, SystemExit) as error:
            raise UsageError(f"cannot import {described(self.entry)}: {shown_error(error)}") from error
        if not callable(factory):
            raise UsageError(f"{described(self.entry)} is not callable: {factory!r:.80}")
        _share_log_level(factory)
        return CheckedFactory(self.entry.name, factory)


@dataclass(frozen=True, slots=True)
class AmbiguousFactory:
    """Placeholder factory for a plugin name that several entry points have; each call raises an error.

    Raises:
        UsageError: always.
    """

    why: str

    def __call__(self, _args: Any, _handle: Any) -> Any:
        """Raise a UsageError that names the entry points."""
        raise UsageError(self.why)

    def checked(self) -> CheckedFactory:
        """Raise a UsageError that names the entry points."""
        raise UsageError(self.why)


def find_plugins(flags: Iterable[str] = ()) -> FoundPlugins:
    """Find the plugins of installed distributions, and add the plugins of `--plugin`.

    Args:
        flags: Values of `--plugin`: `[NAME=]MODULE:FACTORY` or `[NAME=]FILE.py:FACTORY`.

    Raises:
        UsageError: the object of a flag cannot be imported, is not a factory, or has a name that is taken.
    """
    registry, problems = PluginRegistry(), []
    taken = registry_with()
    by_name: dict[str, list[EntryPoint]] = defaultdict(list)
    for entry in entry_points(group=GROUP):
        by_name[entry.name].append(entry)
    for name, entries in sorted(by_name.items()):
        whence = " and ".join(map(described, entries))
        if name in taken:
            problems.append(f'plugin "{name}" already exists; {whence} is ignored')
        elif len(entries) > 1:
            problems.append(f'plugin "{name}" is defined several times: {whence}')
            registry.register(name, AmbiguousFactory(problems[-1]), origin=whence)
        else:
            registry.register(name, EntryPointFactory(entries[0]), origin=whence)
    for flag in flags:
        _register(registry, flag)
    return FoundPlugins(registry, tuple(problems))


def configurable_plugins(flags: Collection[str] | None, config: object) -> FoundPlugins:
    """Find the plugins that a configuration can enable; none without a configuration.

    Raises:
        UsageError: flags are given without a configuration, or a flag is invalid.
    """
    if config is not None:
        return find_plugins(flags or ())
    if flags:
        raise UsageError("--plugin needs --config with a configuration that enables the plugin")
    return FoundPlugins(PluginRegistry(), ())


def described(entry: EntryPoint) -> str:
    """Return the name of an entry point with its distribution."""
    distribution = f" of {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
    return f"entry point {entry.name}{distribution}"


def _register(registry: PluginRegistry, flag: str) -> None:
    """Register the plugin that a flag `--plugin` names."""
    given = _FLAG.fullmatch(flag)
    if given is None:
        raise UsageError(f"--plugin {flag}: expected [NAME=]MODULE:FACTORY or [NAME=]FILE.py:FACTORY")
    try:
        factory: Any = _module(given["module"])
        for step in given["factory"].split("."):
            factory = getattr(factory, step)
    except (Exception, SystemExit) as error:
        raise UsageError(f"--plugin {flag}: cannot import: {shown_error(error)}") from error
    if not callable(factory):
        raise UsageError(f"--plugin {flag}: not callable: {factory!r:.80}")
    _share_log_level(factory)
    name = given["name"] or stated_name(factory)
    known = registry_with(registry)
    if name in known:
        raise UsageError(f'--plugin {flag}: plugin "{name}" already exists: {known[name].origin}')
    registry.register(name, CheckedFactory(name, factory), origin=f"--plugin {given['module']}:{given['factory']}")


def _module(text: str) -> ModuleType:
    """Import a module by name, also from the current folder, or by file."""
    if not text.endswith(".py"):
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(text)
    return _module_of_file(Path(os.path.realpath(text)))


def _module_of_file(path: Path) -> ModuleType:
    """Import a file once, as a module with the file's name, or with the file's path if that name is taken."""
    name = path.stem
    known = importlib.util.find_spec(name) if name.isidentifier() else None
    if not name.isidentifier() or (known is not None and known.origin != str(path)):
        name = str(path)
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None  # noqa: S101 - the path ends as a module's
        assert spec.loader is not None  # noqa: S101 - as above
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _share_log_level(factory: Any) -> None:
    """Set the log level of a plugin's package to the scheduler's level, unless the package has a level."""
    level = logging.getLogger("policysched").level
    own = logging.getLogger(str(getattr(factory, "__module__", "")).partition(".")[0])
    if level != logging.NOTSET and own is not logging.getLogger() and own.level == logging.NOTSET:
        own.setLevel(level)
