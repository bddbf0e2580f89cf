"""Our reading of configurations against kube-scheduler's own, on random ones with a fresh seed.

POLICYSCHED_SEED repeats a run, POLICYSCHED_CASES sets its length. First the plugins of profiles: the same at every
point, or both refuse the configuration. Then decisions under configurations that are valid.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from policysched.app.configuration.model import POLICIES
from policysched.app.configuration.plugin_lists import known_points, plugin_lists
from policysched.app.configuration.profiles import configured_profiles
from policysched.app.configuration.reading import load_configuration
from policysched.errors import UsageError

from . import configs
from .compare import differences
from .config_kinds import Changes, kinds
from .generate import single
from .judge import ours, with_namespaces
from .minors import AT_EACH_MINOR, release_of, share
from .oracle import InvalidCaseError
from .relations import relation
from .seed import seed
from .storage import storage
from .test_decisions import report
from .wild_configs import wild

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from policysched.model.release import Release

    from .oracle import Case, Oracle

SEED = seed()
CASES = int(os.environ.get("POLICYSCHED_CASES") or 2000)
SHOWN = 3
EXPECTED = {
    "NodeAffinity: added preferred",
    "NodeAffinity: added required",
    "NodeResourcesBalancedAllocation: 1 resources",
    "NodeResourcesBalancedAllocation: 3 resources",
    "NodeResourcesFit: LeastAllocated of other resources",
    "NodeResourcesFit: MostAllocated of other resources",
    "NodeResourcesFit: MostAllocated of the usual resources",
    "NodeResourcesFit: RequestedToCapacityRatio of other resources",
    "NodeResourcesFit: RequestedToCapacityRatio of the usual resources",
    "NodeResourcesFit: a curve of one point",
    "NodeResourcesFit: a curve of several points",
    "NodeResourcesFit: ignoredResourceGroups",
    "NodeResourcesFit: weight 0 of a resource",
    "disabled and enabled at multiPoint",
    *(f"disabled at {point}" for point in ("filter", "multiPoint", "preFilter", "preScore", "score")),
    *(f"enabled at {point}" for point in ("filter", "multiPoint", "preFilter", "preScore", "score")),
    *(f"everything disabled at {point}" for point in ("filter", "multiPoint", "preFilter", "preScore", "score")),
    "weight",
    "weight 0",
    "weight below 0",
    "weight too large for 32 bits",
}


def our_profiles(config: dict[str, Any], release: Release) -> dict[str, Any]:
    """List the plugins of our profiles as the oracle does.

    Raises:
        UsageError: we refuse the configuration.
    """
    read = load_configuration(config, release=release)
    profiles = {one.scheduler_name or "": one.plugins for one in read.completed.profiles}
    assert configured_profiles(read).keys() == profiles.keys()
    return {name: _listed(plugins, release) for name, plugins in profiles.items()}


def _listed(plugins: Any, release: Release) -> dict[str, list[Any]]:
    lists = plugin_lists(plugins, known_points(release), release)
    found: dict[str, list[Any]] = {}
    for point, names in lists.points.items():
        kept = [name for name in names if name != POLICIES]
        if kept:
            found[point] = [(name, lists.weights["score"][name]) if point == "score" else name for name in kept]
    return found


def their_profiles(oracle: Oracle, config: dict[str, Any]) -> dict[str, Any]:
    """List the plugins of kube-scheduler's profiles.

    Raises:
        InvalidCaseError: it refuses the configuration.
    """
    return {
        name: {
            point: [(one["name"], one["weight"]) if point == "score" else one["name"] for one in plugins]
            for point, plugins in lists.items()
        }
        for name, lists in oracle.profiles(config).items()
    }


@pytest.mark.oracle
@AT_EACH_MINOR
def test_profiles_have_the_plugins_of_kube_schedulers_or_both_refuse_them(oracle: Oracle) -> None:
    print(f"POLICYSCHED_SEED={SEED}")  # noqa: T201 - shown with a failure
    wrong, refused = [], 0
    numbers = share(oracle, range(CASES))
    for index in numbers:
        config = wild(Random(f"{SEED}/config/{index}"), release_of(oracle))
        try:
            theirs: Any = their_profiles(oracle, config)
        except InvalidCaseError as error:
            theirs, refused = f"refused: {error}", refused + 1
        try:
            mine: Any = our_profiles(config, release_of(oracle))
        except UsageError as error:
            mine = f"refused: {error}"
        if mine != theirs and not (isinstance(mine, str) and isinstance(theirs, str)):
            wrong.append(f"{json.dumps(config)}\nours   {mine}\ntheirs {theirs}")
    print(f"{refused} of {len(numbers)} configurations are refused")  # noqa: T201 - as above
    assert not wrong, "\n".join([f"{len(wrong)} differ", *wrong[:SHOWN]])


def variants(seed: int, indices: Iterable[int]) -> Iterator[Case]:
    """Generate cases with one pod, each under a configuration of its own."""
    for index in indices:
        rng = Random(f"{seed}/configured/{index}")
        make, pool = rng.choices(
            [(single, configs.PLAIN), (relation, configs.RELATED), (storage, configs.VOLUMES)], [5, 2, 2]
        )[0]
        yield {**make(rng, f"{seed}-c{index}"), "config": configs.variant(rng, pool), "usual": pool.base()}


@pytest.mark.oracle
@AT_EACH_MINOR
def test_decisions_under_configurations_equal_those_of_kube_scheduler(oracle: Oracle, tmp_path: Path) -> None:
    print(f"POLICYSCHED_SEED={SEED}")  # noqa: T201 - shown with a failure
    failing, changes = [], Changes()
    for case in map(with_namespaces, variants(SEED, share(oracle, range(CASES // 4)))):
        try:
            theirs = oracle.decide(case)
        except InvalidCaseError:
            with pytest.raises(UsageError):
                ours(case, oracle.minor)
            continue
        changes.count(case["config"], theirs, oracle.decide({**case, "config": case["usual"]}))
        if differences(ours(case, oracle.minor), theirs):
            failing.append(case)
    print(changes.table())  # noqa: T201 - shown with a failure, or with -rP
    assert not failing, report(oracle, failing, tmp_path)


@pytest.mark.oracle
def test_changes_of_the_configuration_bite(oracle: Oracle) -> None:
    changes = Changes()
    for case in variants(7, range(400)):
        with suppress(InvalidCaseError):  # by an argument of later releases
            changes.count(case["config"], oracle.decide(case), oracle.decide({**case, "config": case["usual"]}))
    assert set(changes.bites) >= EXPECTED
    assert sum(changes.bites.values()) > sum(changes.cases.values()) / 3


@pytest.mark.oracle
def test_about_a_sixth_of_the_wild_configurations_is_refused(oracle: Oracle) -> None:
    refused = 0
    for index in range(200):
        try:
            oracle.profiles(wild(Random(index), release_of(oracle)))
        except InvalidCaseError:
            refused += 1
    assert 15 < refused < 60


def test_the_base_changes_nothing() -> None:
    assert kinds(configs.base()) == set()


def test_a_case_of_a_seed_is_the_same_whichever_others_are_asked_for() -> None:
    assert list(variants(3, range(5)))[4] == list(variants(3, range(9)))[4]
    assert wild(Random("3/config/1")) == wild(Random("3/config/1"))
