"""Reading of a KubeSchedulerConfiguration into its completed form, or reporting of all its errors.

The file is decoded as strictly as in kube-scheduler. Older versions (v1beta1 to v1beta3) are decoded with v1's
defaults. Their fields and plugins that no longer exist are dropped: the volume limit plugins of single clouds (replaced
by NodeVolumeLimits) and SelectorSpread (replaced by PodTopologySpread). In a v1 file such names are an error.

Source: kube-scheduler/config/v1/types.go (DecodeNestedObjects), cmd/kube-scheduler/app/options/configfile.go, v1.36.
"""

from __future__ import annotations

import copy
import dataclasses
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from policysched.app.configuration.model import KIND, Configuration, PluginConfig, ProfileConfig, completed
from policysched.app.configuration.validation import faults
from policysched.app.files.given import is_text
from policysched.errors import UsageError
from policysched.model.release import DEFAULT, RELEASES, Release
from policysched.plugins.arguments import API_VERSION, Fault, read_arguments, strictly
from policysched.plugins.registry import plugin_entries
from policysched.reading.documents import Document
from policysched.reading.documents import read as read_files
from policysched.reading.files import read_text
from policysched.reading.positions import SourcePosition

log = logging.getLogger(__name__)
OLD_VERSIONS: Final = tuple(f"kubescheduler.config.k8s.io/v1beta{number}" for number in (1, 2, 3))
REPLACED: Final = {
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
    "SelectorSpread": "PodTopologySpread",
}
"""Plugins that Kubernetes removed, with the plugins that replace them."""
GONE_FIELDS: Final = ("healthzBindAddress", "metricsBindAddress")
"""Fields that kube-scheduler, since v1.23, ignores in configurations of older versions."""
NO_FILE: Final = "config"
"""Name that messages use for a configuration that is not in a file."""
_INDEX: Final = re.compile(r"\[(\d+)\]")
ConfigurationInput: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Document
"""A configuration: YAML or JSON text, path of a file, dict, or object of a file."""


@dataclass(frozen=True, slots=True)
class FieldFault:
    """One error of a configuration, with the position of the field in the file."""

    file: str
    """Name of the file; `config` without a file."""
    place: SourcePosition | None
    field: str
    """Path of the field; empty for the whole configuration."""
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Return the error as a dict, without absent parts."""
        place = {"line": self.place.line, "column": self.place.column} if self.place else {}
        return {"file": self.file, **place, "field": self.field, "message": self.message}

    def __str__(self) -> str:
        """Return the error in one line."""
        where = f"{self.file}:{self.place.line}:{self.place.column}" if self.place else self.file
        return ": ".join(filter(None, (where, self.field, self.message)))


class ConfigurationError(UsageError):
    """Error: a configuration cannot be used; contains all errors of the configuration.

    Attributes:
        faults: All errors.
    """

    def __init__(self, faults: Sequence[FieldFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(map(str, self.faults)))


@dataclass(frozen=True, slots=True)
class ReadConfiguration:
    """A validated configuration with the positions of its fields in the file."""

    completed: Configuration
    stated: Configuration
    """The configuration as written, before defaults that depend on other fields are set."""
    source: _Source
    release: Release
    """The release whose defaults the configuration has."""

    def error(self, found: Iterable[Fault]) -> ConfigurationError:
        """Return the exception for invalid fields."""
        return self.source.error(found)

    def multi_point(self, index: int) -> list[str]:
        """Return the plugins that a profile enables at multiPoint, before the default plugins are merged."""
        profiles = self.stated.profiles
        return [one.name for one in profiles[index].plugins.multi_point.enabled] if profiles else []


@dataclass(frozen=True, slots=True)
class _Source:
    """The content from which a configuration is decoded, to find the positions of its fields in the file."""

    stated: Mapping[str, Any]
    """The content, converted to v1."""
    document: Document | None
    left_out: Mapping[str, Sequence[int]]
    """Original indexes of the remaining items, by path of each list from which items were dropped."""

    def error(self, found: Iterable[Fault]) -> ConfigurationError:
        return ConfigurationError([self._placed(*one) for one in found])

    def _placed(self, field: str, why: str) -> FieldFault:
        path, end = "", 0
        for index in _INDEX.finditer(field):
            kept = self.left_out.get(field[: index.start()])
            path += f"{field[end : index.start()]}[{kept[int(index[1])] if kept else index[1]}]"
            end = index.end()
        path += field[end:]
        document = self.document
        if document is None:
            return FieldFault(NO_FILE, None, path, why)
        return FieldFault(document.file, document.place(path), path, why)


def load_configuration(
    given: ConfigurationInput,
    changed: Callable[[Configuration], Configuration] | None = None,
    release: Release = DEFAULT,
) -> ReadConfiguration:
    """Read and validate a configuration, with the positions of its fields.

    Args:
        given: The configuration.
        changed: Applies flags before validation.
        release: The release whose fields, plugins and defaults apply.

    Raises:
        ConfigurationError: the configuration has errors.
        UsageError: the input is not a configuration.
    """
    read = decode_configuration(given, release)
    if changed is not None:
        read = dataclasses.replace(read, completed=changed(read.completed))
    found = list(faults(read.completed, release))
    if found:
        raise read.error(found)
    return read


def decode_configuration(given: ConfigurationInput, release: Release = DEFAULT) -> ReadConfiguration:
    """Decode a configuration without validating its values.

    Raises:
        ConfigurationError: fields are unknown or of the wrong type.
        UsageError: the input is not a configuration.
    """
    source = _source(given)
    unknown = list(_fields_of_others(source.stated, release))
    decoded, found = strictly(_without(source.stated, unknown), Configuration, kept="args")
    found += unknown
    profiles = []
    for index, profile in enumerate(decoded.profiles if decoded is not None else ()):
        made, wrong = _with_arguments(profile, f"profiles[{index}]", release)
        profiles.append(made)
        found += wrong
    if decoded is None or found:
        raise source.error(found)
    whole = completed(replace(decoded, profiles=tuple(profiles)), release)
    return ReadConfiguration(whole, decoded, source, release)


def _source(given: ConfigurationInput) -> _Source:
    document = None
    if isinstance(given, str | os.PathLike):
        text, file = _text(given)
        documents = read_files(text, file)
        if len(documents) != 1:
            raise UsageError(f"{file}: expected one document, got {len(documents)}")
        given = documents[0]
    if isinstance(given, Document):
        document, given = given, given.object
    source = _Source(given, document, {})
    if not isinstance(given, Mapping):
        raise source.error([("", f"expected an object of kind {KIND}")])
    version = given.get("apiVersion")
    found = list(_header_faults(given))
    if found:
        raise source.error(found)
    return _renewed(source, str(version)) if version in OLD_VERSIONS else source


def _text(given: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the text of a configuration and its name for messages."""
    if isinstance(given, str) and is_text(given):
        return given, NO_FILE
    return read_text(os.fspath(given)), os.fspath(given)


def _header_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    if given.get("kind") != KIND:
        yield "kind" if given.get("kind") is not None else "", f"expected an object of kind {KIND}"
    if given.get("apiVersion") not in (API_VERSION, *OLD_VERSIONS):
        yield "apiVersion", f"expected {API_VERSION}"


def _fields_of_others(stated: Mapping[str, Any], release: Release) -> Iterator[Fault]:
    """Yield the fields of a configuration that only other Kubernetes releases have."""
    minors = {
        field: minor
        for minor, one in reversed(RELEASES.items())
        for field in one.configuration_fields - release.configuration_fields
    }
    for place, holder in _holders(stated):
        for field in holder.keys() & minors:
            yield f"{place}{field}", f"unknown field; Kubernetes {minors[field]} has it"


def _without(stated: Mapping[str, Any], unknown: Sequence[Fault]) -> Mapping[str, Any]:
    """Return a configuration without the fields that the release does not know; no decoder reads their values."""
    if not unknown:
        return stated
    kept, fields = copy.deepcopy(dict(stated)), {field for field, _ in unknown}
    for place, holder in _holders(kept):
        for name in [one for one in holder if f"{place}{one}" in fields]:
            del holder[name]  # type: ignore[attr-defined]
    return kept


def _holders(stated: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the configuration, its profiles and their `plugins` objects, each with the path prefix of its fields."""
    yield "", stated
    profiles = stated.get("profiles")
    for index, profile in enumerate(profiles if isinstance(profiles, list | tuple) else ()):
        if isinstance(profile, Mapping):
            yield f"profiles[{index}].", profile
            if isinstance(plugins := profile.get("plugins"), Mapping):
                yield f"profiles[{index}].plugins.", plugins


def _with_arguments(profile: ProfileConfig, place: str, release: Release) -> tuple[ProfileConfig, list[Fault]]:
    """Decode the arguments of plugins that declare a type of arguments; return the profile and the errors."""
    found: list[Fault] = []
    configs = []
    for index, one in enumerate(profile.plugin_config):
        entry, args = plugin_entries(release).get(one.name), one.args
        if entry is not None and entry.arguments is not None:
            args, wrong = read_arguments(one.name, one.args, entry.arguments)
            at = f"{place}.pluginConfig[{index}].args"
            found += ((f"{at}.{field}" if field else at, why) for field, why in wrong)
        configs.append(PluginConfig(name=one.name, args=args))
    return replace(profile, plugin_config=tuple(configs)), found


def _renewed(source: _Source, version: str) -> _Source:
    """Convert a configuration of an older version to v1, logging dropped parts."""
    log.warning("apiVersion %s is read as %s with its defaults", version, API_VERSION)
    gone: set[str] = set()
    left_out: dict[str, Sequence[int]] = {}
    stated = _as_v1(source.stated, "", gone, left_out)
    for name in sorted(gone):
        log.warning("plugin %s was removed from Kubernetes and is ignored; %s replaces it", name, REPLACED[name])
    for name in GONE_FIELDS:
        if stated.pop(name, None) is not None:
            log.warning("%s was removed from Kubernetes and is ignored", name)
    return _Source(stated, source.document, left_out)


def _as_v1(value: Any, path: str, gone: set[str], left_out: dict[str, Sequence[int]]) -> Any:
    """Copy a configuration without plugins that v1 removed; record removed names, and old indexes of list items."""
    if isinstance(value, Mapping):
        return {
            key: API_VERSION
            if key == "apiVersion" and item in OLD_VERSIONS
            else _as_v1(item, f"{path}.{key}".lstrip("."), gone, left_out)
            for key, item in value.items()
        }
    if not isinstance(value, list | tuple):
        return value
    kept = [index for index, item in enumerate(value) if not _is_gone(item)]
    if len(kept) < len(value):
        gone.update(item["name"] for item in value if _is_gone(item))
        left_out[path] = kept
    return [_as_v1(value[index], f"{path}[{place}]", gone, left_out) for place, index in enumerate(kept)]


def _is_gone(item: Any) -> bool:
    name = item.get("name") if isinstance(item, Mapping) else None
    return isinstance(name, str) and name in REPLACED
