"""Every recipe of the cookbook does what its tests say, and the page shows the recipes as they are."""

from __future__ import annotations

from datetime import datetime

import pytest

import policysched
from tests.examples.cookbook import EXAMPLES, PAGE, RECIPES, Case, cases, cluster_file, documents, page

CASES = [pytest.param(recipe, case, id=f"{recipe}: {case.given}") for recipe in RECIPES for case in cases(recipe)]


def test_every_folder_with_tests_is_a_recipe() -> None:
    assert {one.parent.name for one in EXAMPLES.glob("*/tests.yaml")} == set(RECIPES)
    assert len(RECIPES) == 21


@pytest.mark.parametrize(("recipe", "case"), CASES)
def test_a_recipe_does_what_its_tests_say(recipe: str, case: Case) -> None:
    objects, policies = documents(recipe, cluster_file(recipe)), documents(recipe, "policy.yaml")
    now = None if case.now is None else datetime.fromisoformat(case.now)
    record = policysched.dry_run(objects, case.pod, policies, now=now, metrics=case.metrics).to_dict()
    said = record.get("rules", {}).get(policies[0]["metadata"]["name"], {})
    assert {rule: sorted(nodes) for rule, nodes in said.get("filters", {}).items()} == case.rejected
    assert said.get("scores", {}) == case.scores
    assert record.get("best", []) == case.best


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_rule_of_a_recipe_speaks_in_its_tests(recipe: str) -> None:
    [policy] = documents(recipe, "policy.yaml")
    spec, tried = policy["spec"], cases(recipe)
    for rule in spec.get("filters", ()):
        assert any(case.rejected.get(rule["name"]) for case in tried), rule["name"]
    for rule in spec.get("scores", ()):
        assert any(case.scores.get(rule["name"]) for case in tried), rule["name"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_compiles_without_a_warning(recipe: str) -> None:
    assert policysched.check(documents(recipe, "policy.yaml")) == []


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tests.examples.cookbook writes it anew"
