"""Printing of a completed configuration as kube-scheduler writes it, as dict, YAML or JSON.

kube-scheduler decides field by field whether an empty value is written.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import yaml
from msgspec.structs import fields

from policysched.app.configuration.model import (
    ClientConnection,
    Configuration,
    ExtenderConfig,
    LeaderElection,
    ListedPlugin,
    ManagedResource,
    PluginConfig,
    ProfileConfig,
)
from policysched.model.objects import NodeSelector, Requirement, TopologySpreadConstraint
from policysched.plugins.inter_pod_affinity.plugin import AffinityArguments
from policysched.plugins.node_resources.allocation import ScoredResource

_SHOWN_EMPTY: Final[Mapping[type, frozenset[str]]] = {
    Configuration: frozenset({"enableProfiling", "enableContentionProfiling"}),
    LeaderElection: frozenset({"leaderElect"}),
    ClientConnection: frozenset({"kubeconfig", "acceptContentTypes"}),
    ProfileConfig: frozenset({"schedulerName"}),
    ListedPlugin: frozenset({"name"}),
    PluginConfig: frozenset({"name", "args"}),
    ExtenderConfig: frozenset({"urlPrefix"}),
    ManagedResource: frozenset({"name"}),
    AffinityArguments: frozenset({"ignorePreferredTermsOfExistingPods"}),
    ScoredResource: frozenset({"name"}),
    NodeSelector: frozenset({"nodeSelectorTerms"}),
    Requirement: frozenset({"key", "operator"}),
    TopologySpreadConstraint: frozenset({"topologyKey", "whenUnsatisfiable"}),
}
"""Fields that are printed even if empty, null or false; numbers are always printed."""


def to_dict(configuration: Configuration) -> dict[str, Any]:
    """Return a completed configuration as a dict that decodes to the same configuration."""
    made: dict[str, Any] = _printed(configuration)
    for extender in made.get("extenders", ()):
        if not extender["weight"]:
            del extender["weight"]
    return made


def to_yaml(configuration: Configuration) -> str:
    """Return a completed configuration as YAML."""
    return yaml.safe_dump(to_dict(configuration), sort_keys=False, allow_unicode=True)


def _printed(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        shown = _SHOWN_EMPTY.get(type(value), frozenset())
        found = ((field.encode_name, getattr(value, field.name)) for field in fields(value))
        return {name: _printed(one) for name, one in found if name in shown or not _is_empty(one)}
    if isinstance(value, list | tuple):
        return [_printed(one) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def _is_empty(value: Any) -> bool:
    return not value and not (isinstance(value, int | float) and not isinstance(value, bool))
