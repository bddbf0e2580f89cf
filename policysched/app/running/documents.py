"""Documents of /configz and /debug/policies: the configuration, and the policies and plugins in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from policysched.app.configuration.model import Configuration
from policysched.app.configuration.printing import to_dict
from policysched.app.running.configuration_file import without_secrets
from policysched.framework.optional_interfaces import PluginBlock
from policysched.framework.profile import Profile
from policysched.rules.policy_set.budget import MAX_UNITS
from policysched.rules.policy_set.store import PolicyStore, StoredPolicy


def configuration_document(configuration: Configuration) -> dict[str, Any]:
    """Return the document of /configz: the completed configuration, without passwords and keys."""
    return {"componentconfig": to_dict(without_secrets(configuration))}


def policies_document(store: PolicyStore, profiles: Mapping[str, Profile]) -> dict[str, Any]:
    """Return the document of /debug/policies: generations, costs, and plugins with policies.

    Args:
        store: All policies.
        profiles: Profiles in force, with their policies.
    """
    entries = ((key, store.get(key)) for key in sorted(store.listed()))
    return {
        "policies": [_policy(entry) for _, entry in entries if entry is not None],
        "costLimit": MAX_UNITS,
        "profiles": [_profile(profile) for profile in profiles.values()],
    }


def _policy(entry: StoredPolicy) -> dict[str, Any]:
    active, metadata = entry.active, entry.policy.metadata
    document: dict[str, Any] = {
        "name": entry.policy.key,
        "generation": metadata.generation,
        "activeGeneration": active.generation if active is not None else 0,
    }
    if active is not None:
        document |= {
            "mode": active.spec.mode,
            "schedulerNames": list(active.spec.scheduler_names),
            "priority": active.spec.priority,
            "weight": active.spec.weight,
            "tier": active.spec.tier,
            "filters": [rule.name for rule in active.spec.filters],
            "scores": [rule.name for rule in active.spec.scores],
            "cost": active.units,
        }
    if entry.result.errors:
        errors = (one for one in entry.result.diagnostics if one.severity == "error")
        document["errors"] = [f"{one.field}: {one.code} {one.message}" for one in errors]
    if entry.refused:
        document["refused"] = entry.refused
    return document


def _profile(profile: Profile) -> dict[str, Any]:
    """Return the plugins at each extension point in order, with weights at Score."""
    document: dict[str, Any] = {"schedulerName": profile.scheduler_name, "queueSort": profile.queue_sort.name}
    for point in fields(profile):
        plugins = getattr(profile, point.name)
        if isinstance(plugins, tuple) and plugins:
            head, *rest = point.name.split("_")
            document[head + "".join(map(str.title, rest))] = [name for one in plugins for name in _names(one)]
    return document


def _names(of_point: Any) -> list[Any]:
    """Return a plugin's name, with its weight at Score; for the plugin that runs policies, the policies' names."""
    match of_point:
        case (PluginBlock() as block, _):
            return [{"name": one.name, "weight": one.weight} for one in block.members]
        case (plugin, weight):
            return [{"name": plugin.name, "weight": weight}]
        case PluginBlock():
            return [one.name for one in of_point.members]
        case str():
            return [of_point]
    return [of_point.name]
