"""What is registered: names, points in the order in which a pod meets them, origins, and what cannot be enabled."""

from __future__ import annotations

from typing import Any

from policysched.app.plugins.discovery import find_plugins
from policysched.app.plugins.listing import plugin_rows, plugin_table
from policysched.plugins.registry import plugin_entries
from tests.app.plugins.distributions import CLOSED, Site
from tests.app.showing import lines

MANY = """
class Many:
    def score(self, state, pod, node): return 1
    def filter_nodes(self, state, pod, nodes): return None
    def less(self, a, b): return True
    def unreserve(self, state, pod, node_name): return None
    def __init__(self, args, handle): raise RuntimeError("nobody asked for one")

def made(args, handle) -> Many: return Many(args, handle)
def unknown(args, handle): return Many(args, handle)
"""


def rows(*flags: str) -> dict[str, dict[str, Any]]:
    return {row.name: row.to_dict() for row in plugin_rows(find_plugins(flags))}


def test_default_plugins_are_listed_with_their_points() -> None:
    found = rows()
    assert [name for name in found if name != "SchedulingPolicy"] == list(plugin_entries())
    assert found["VolumeBinding"] == {
        "name": "VolumeBinding",
        "points": ("preFilter", "filter", "preScore", "score", "reserve", "preBind"),
        "origin": "default",
    }
    assert found["SchedulingPolicy"]["points"] == ("filter", "score")


def test_other_plugins_are_listed_by_the_methods_of_their_classes(site: Site) -> None:
    site.install("acme", "Many = acme_many:Many", "made = acme_many:made", "some = acme_many:unknown", acme_many=MANY)
    found = rows("acme_many:Many".replace("Many", "unknown"))
    points = ("queueSort", "filter", "score", "reserve")
    assert found["Many"] == {"name": "Many", "points": points, "origin": "entry point Many of acme 1.2"}
    assert found["made"]["points"] == points
    assert "points" not in found["some"]
    assert found["unknown"]["origin"] == "--plugin acme_many:unknown"


def test_plugin_that_cannot_be_enabled_says_why(site: Site) -> None:
    site.install("acme", "Gone = acme_gone:Gone", "Closed = acme_closed:Closed", acme_closed=CLOSED)
    site.install("best", "Closed = acme_closed:Closed")
    found = rows()
    assert found["Gone"]["problem"].startswith("cannot import entry point Gone of acme 1.2: ModuleNotFoundError")
    assert found["Closed"]["problem"].startswith('plugin "Closed" is defined several times: ')


def test_table_shows_what_is_known(site: Site) -> None:
    site.install("acme", "Gone = acme_gone:Gone", "some = acme_many:unknown", acme_many=MANY)
    shown = lines(plugin_table(list(plugin_rows(find_plugins()))))
    assert shown[0] == "name points origin"
    assert shown[-2:] == [
        "Gone - entry point Gone of acme 1.2",
        "some known after creation entry point some of acme 1.2",
    ]
