"""Reading and checking of configuration files.

Checking also creates the profiles, because some errors appear only then; nothing is started.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from policysched.app.configuration.model import KIND
from policysched.app.configuration.profiles import NO_PLUGINS, configured_profiles
from policysched.app.configuration.reading import (
    ConfigurationError,
    FieldFault,
    ReadConfiguration,
    decode_configuration,
    load_configuration,
)
from policysched.app.configuration.validation import faults
from policysched.errors import UsageError
from policysched.framework.registry import PluginRegistry
from policysched.model.release import Release
from policysched.model.release_choice import AUTO, release_named
from policysched.reading.documents import Document, Object
from policysched.reading.files import shown
from policysched.reading.folders import empty
from policysched.reading.loading import load

_GROUP: Final = "kubescheduler.config.k8s.io/"


@dataclass(frozen=True, slots=True)
class CheckedFiles:
    """The result of checking configuration files: the errors, and the number of configurations."""

    configurations: int
    """Number of configurations that were checked."""
    faults: tuple[FieldFault, ...]


def read_file(name: str, plugins: PluginRegistry = NO_PLUGINS, kube_version: str = AUTO) -> ReadConfiguration:
    """Read the configuration in a file with the rules of a Kubernetes minor's kube-scheduler.

    Raises:
        UsageError: the file cannot be used; the text has all errors of the configuration.
    """
    documents = load([name])
    if len(documents) > 1:
        raise UsageError(f"{documents[1].where}: expected one KubeSchedulerConfiguration, got several objects")
    read = load_configuration(documents[0], release=release_named(kube_version))
    configured_profiles(read, plugins)
    return read


def check_files(names: Iterable[str], plugins: PluginRegistry = NO_PLUGINS, kube_version: str = AUTO) -> CheckedFiles:
    """Return all errors of the configurations in files; in folders, objects of other kinds are ignored.

    Args:
        names: The files and folders.
        plugins: Plugins that a configuration can enable besides the default ones.
        kube_version: The Kubernetes minor whose kube-scheduler reads the configurations.

    Raises:
        UsageError: a file cannot be read or contains no objects, or a folder has no configuration.
    """
    release = release_named(kube_version)
    documents = [one for name in names for one in _configurations(name)]
    found = tuple(fault for one in documents for fault in _faults(one, plugins, release))
    return CheckedFiles(len(documents), found)


def _configurations(name: str) -> list[Document]:
    """Read the objects of a file, or the configurations of a folder."""
    documents = load([name])
    if documents[0].file == shown(name):
        return documents
    found = [one for one in documents if _is_meant(one.object)]
    if not found:
        raise empty(name, f"no {KIND} in the folder")
    return found


def _is_meant(one: Object) -> bool:
    return one.get("kind") == KIND or str(one.get("apiVersion")).startswith(_GROUP)


def _faults(document: Document, plugins: PluginRegistry, release: Release) -> tuple[FieldFault, ...]:
    """Return invalid fields, and errors found while creating profiles, in the order of the file."""
    found: list[FieldFault] = []
    try:
        read = decode_configuration(document, release)
        found += read.error(faults(read.completed, release)).faults
        configured_profiles(read, plugins)
    except ConfigurationError as error:
        named = {one.field for one in found}
        found += (one for one in error.faults if one.field not in named)
    return tuple(sorted(dict.fromkeys(found), key=lambda one: one.place or (0, 0)))
