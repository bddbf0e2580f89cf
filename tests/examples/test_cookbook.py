"""The cookbook has its recipes, and its page shows them as they are."""

from __future__ import annotations

from tests.examples.cases import EXAMPLES, FOLDERS, PLUGINS
from tests.examples.cookbook import PAGE, RECIPES, page


def test_every_folder_is_a_recipe_or_a_story_of_its_own() -> None:
    stories = {str(one.parent.relative_to(EXAMPLES)) for one in EXAMPLES.glob("tour/*/README.md")}
    assert set(RECIPES) | stories == {*FOLDERS, *PLUGINS}
    assert len(RECIPES) == 23


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tests.examples.cookbook writes it anew"
