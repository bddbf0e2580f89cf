"""The cookbook has a recipe for every example, and its page is current."""

from __future__ import annotations

from tests.examples.cases import EXAMPLES, FOLDERS, PLUGINS
from tools.cookbook import PAGE, RECIPES, page


def test_every_folder_is_a_recipe_or_a_story_of_its_own() -> None:
    stories = {str(one.parent.relative_to(EXAMPLES)) for one in EXAMPLES.glob("tour/*/README.md")}
    assert set(RECIPES) | stories == {*FOLDERS, *PLUGINS, "tour/10-record"}
    assert len(RECIPES) == 23


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `python -m tools.cookbook`"
