"""The completed form of random configurations against kube-scheduler's own, and the fields that are refused.

POLICYSCHED_SEED repeats a run, POLICYSCHED_CASES sets its length. What both accept has the same fields with the same
values. What kube-scheduler refuses we refuse, and by the fields that it names: all of them where it lists all.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from policysched.app.configuration.model import POLICIES
from policysched.app.configuration.printing import to_dict
from policysched.app.configuration.profiles import configured_profiles
from policysched.app.configuration.reading import OLD_VERSIONS, ConfigurationError, load_configuration
from policysched.errors import UsageError
from policysched.reading.loading import load
from tests.app.configuration.files import files

from .minors import AT_EACH_MINOR, release_of, share
from .seed import seed
from .wild_configs import whole

if TYPE_CHECKING:
    from policysched.model.release import Release

    from .oracle import Oracle

SEED = seed()
CASES = int(os.environ.get("POLICYSCHED_CASES") or 600)
SHOWN = 5
ABOUT_ITSELF = {"apiversion", "kind"}
NESTED = re.compile(r"decoding \.(profiles\[\d+\]\.pluginConfig\[\d+\]): ")


def ours(config: dict[str, Any], release: Release) -> tuple[dict[str, Any] | None, set[str]]:
    """Complete a configuration, and name the fields by which it is refused."""
    try:
        read = load_configuration(config, release=release)
        configured_profiles(read)
    except ConfigurationError as error:
        return None, {one.field for one in error.faults}
    except UsageError as error:
        pytest.fail(f"{error} names no field")
    return without_policies(to_dict(read.completed)), set()


def without_policies(config: dict[str, Any]) -> dict[str, Any]:
    """Leave out the plugin that kube-scheduler does not have."""
    for profile in config["profiles"]:
        everywhere = profile["plugins"]["multiPoint"]
        everywhere["enabled"] = [one for one in everywhere.get("enabled", []) if one["name"] != POLICIES]
        if not everywhere["enabled"]:
            del everywhere["enabled"]
    return config


def difference(
    config: dict[str, Any], theirs: dict[str, Any] | None, refusals: list[dict[str, str]], release: Release
) -> str:
    """Say how we differ from kube-scheduler, the empty text where we do not."""
    mine, fields = ours(config, release)
    if (mine is None) != (theirs is None):
        return f"{'accepted' if theirs else 'refused'} there"
    if theirs is not None and mine is not None:
        return next(
            (name for name in mine.keys() | theirs.keys() if mine.get(name) != without_null(theirs).get(name)), ""
        )
    if any(one.lower() in ABOUT_ITSELF for one in config.keys() - {"apiVersion", "kind"}):
        return ""  # its decoder finds the two in any case, and reads on before it refuses the spelling
    if refusals[0]["stage"] == "validate":
        named = {in_our_words(one["field"]) for one in refusals}
        return "" if {shortened(one) for one in named} == {shortened(one) for one in fields} else "other fields"
    if refusals[0]["field"] == "strict":
        named = {field for one in refusals for field in unknown(one["message"])}
        return "" if named == fields else "other unknown fields"
    named = {field for one in refusals if (field := of_wrong_type(one["message"]) or not_built(one["message"], config))}
    return "" if all(any(re.search(name, one) for one in fields) for name in named) else "another field"


def without_null(config: dict[str, Any]) -> dict[str, Any]:
    """Take a null list of terms, which means the same, for an empty one."""
    made: dict[str, Any] = json.loads(
        json.dumps(config).replace('"nodeSelectorTerms": null', '"nodeSelectorTerms": []')
    )
    return made


def in_our_words(field: str) -> str:
    """Write a field that kube-scheduler validates as the file does."""
    return field.replace("queueSort.Enabled", "queueSort.enabled")


def shortened(field: str) -> str:
    """Leave out what kube-scheduler or we do not say: which arguments of queueSort, the place in an affinity."""
    return re.sub(r"(pluginConfig)(\[\d+\])?(\.args)$|(addedAffinity).*", r"\1\3\4", field)


def unknown(message: str) -> list[str]:
    """List the unknown fields of a message."""
    nested = NESTED.search(message)
    before = f"{nested[1]}.args." if nested else ""
    return [before + field for field in re.findall(r'unknown field "([^"]*)"', message)]


def of_wrong_type(message: str) -> str:
    """Return a pattern for the field that a decoder's message names, the empty text where it names none."""
    field = re.search(r"Go struct field \w*\.(?:DebuggingConfiguration\.)?(\S+) of type", message)
    if field is None:
        return ""
    nested = NESTED.search(message)
    before = re.escape(f"{nested[1]}.args.") if nested else ""
    return "^" + before + r"(\[\d+\])?\.".join(re.escape(step) for step in field[1].split(".")) + r"(\[\d+\])?$"


def not_built(message: str, config: dict[str, Any]) -> str:
    """Return a pattern for the field by which a profile cannot be made, the empty text where nothing is said of one."""
    for words, field in (
        ("queue sort plugin required", r"plugins\.queueSort$"),
        ("one bind plugin is needed", r"plugins\.bind$"),
        ("one placement generate plugin", r"plugins\.placementGenerate$"),
        ("different queue sort plugin args", r"pluginConfig$"),
        ("score plugins: total score", r"plugins\.(score|placementScore)$"),
    ):
        if words in message:
            return field
    if found := re.search(r'initializing plugin "(\w+)": \[?([\w.\[\]]+?):', message):
        places = {one.get("name"): at for profile in config["profiles"] for at, one in numbered(profile)}
        return re.escape(f"pluginConfig[{places[found[1]]}].args.{found[2]}") + "$"
    point = re.search(r'(\w)(\w*)Plugin"? ?("\w*" does not exist|plugin$)|as "(\w)(\w*)Plugin', message)
    return r"\.plugins\.\w+\.enabled" if point else ""


def numbered(profile: dict[str, Any]) -> Any:
    return enumerate(profile.get("pluginConfig") or [])


@pytest.mark.oracle
@AT_EACH_MINOR
def test_completed_configurations_are_those_of_kube_scheduler_and_refusals_name_the_same_fields(oracle: Oracle) -> None:
    print(f"POLICYSCHED_SEED={SEED}")  # noqa: T201 - shown with a failure
    wrong, stages, release = [], Counter[str](), release_of(oracle)
    numbers = share(oracle, range(CASES))
    for index in numbers:
        config = whole(Random(f"{SEED}/whole/{index}"), release)
        theirs, refusals = oracle.completed(config)
        stages[refusals[0]["stage"] if refusals else "accepted"] += 1
        if how := difference(config, theirs, refusals, release):
            mine, fields = ours(config, release)
            wrong.append(f"{how}\n{json.dumps(config)}\nours   {fields or mine}\ntheirs {refusals or theirs}")
    print(dict(stages))  # noqa: T201 - as above
    assert not wrong, "\n\n".join([f"{len(wrong)} differ", *wrong[:SHOWN]])
    assert min(stages[one] for one in ("accepted", "decode", "validate", "build")) > len(numbers) / 100


def written() -> list[dict[str, Any]]:
    """Return the configurations of the written files that are for kube-scheduler, too."""
    unreadable = ("key-twice", "no-yaml")
    paths = [path for path in (*files("good"), *files("bad")) if path.stem not in unreadable]
    configs = [dict(one.object) for path in paths for one in load([str(path)])]
    return [one for one in configs if POLICIES not in json.dumps(one) and one.get("apiVersion") not in OLD_VERSIONS]


@pytest.mark.oracle
@AT_EACH_MINOR
@pytest.mark.parametrize("config", written())
def test_written_files_are_completed_or_refused_as_by_kube_scheduler(config: dict[str, Any], oracle: Oracle) -> None:
    assert not difference(config, *oracle.completed(config), release_of(oracle))
