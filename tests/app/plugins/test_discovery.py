"""Finding plugins: entry points of distributions, imported when they are enabled, and what `--plugin` names."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from policysched.app.plugins.discovery import find_plugins
from policysched.errors import UsageError
from tests.app.plugins.distributions import CLOSED, Site


def made(name: str, *flags: str) -> Any:
    return find_plugins(flags).registry.make(name, {"a": 1}, "handle")


def refusal(*flags: str, of: str = "") -> str:
    with pytest.raises(UsageError) as caught:
        made(of, *flags)
    return str(caught.value)


def test_entry_points_are_registered_with_their_distributions(site: Site) -> None:
    site.install("acme", "Closed = acme_closed:Closed", acme_closed=CLOSED)
    found = find_plugins()
    assert found.registry["Closed"].origin == "entry point Closed of acme 1.2"
    assert found.registry.make("Closed", {"a": 1}, "handle").made_of == ({"a": 1}, "handle")
    assert found.problems == ()


def test_entry_point_that_does_not_import_is_an_error_where_it_is_made(site: Site) -> None:
    site.install("acme", "Broken = acme_broken:Closed", acme_broken="import nothing_of_that_name\n")
    assert find_plugins().problems == ()
    expected = "cannot import entry point Broken of acme 1.2: ModuleNotFoundError: "
    assert refusal(of="Broken") == f"{expected}No module named 'nothing_of_that_name' (acme_broken.py:1)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = (\n", "cannot import entry point Broken of acme 1.2: SyntaxError: "),
        ("raise SystemExit(3)\n", "cannot import entry point Broken of acme 1.2: SystemExit: 3 (acme_broken.py:1)"),
        (
            "",
            "cannot import entry point Broken of acme 1.2: AttributeError: module 'acme_broken' has no attribute "
            "'Closed'",
        ),
        ("Closed = 5\n", "entry point Broken of acme 1.2 is not callable: 5"),
    ],
)
def test_entry_point_without_a_factory_is_an_error_that_names_it(site: Site, text: str, why: str) -> None:
    site.install("acme", "Broken = acme_broken:Closed", acme_broken=text)
    assert refusal(of="Broken").startswith(why)


def test_name_of_a_default_plugin_is_left_out_and_said(site: Site) -> None:
    site.install("acme", "NodeName = acme_closed:Closed", acme_closed=CLOSED)
    found = find_plugins()
    assert "NodeName" not in found.registry
    assert found.problems == ('plugin "NodeName" already exists; entry point NodeName of acme 1.2 is ignored',)


def test_name_of_two_distributions_is_refused_where_it_is_made(site: Site) -> None:
    site.install("acme", "Closed = acme_closed:Closed", "Other = acme_closed:Closed", acme_closed=CLOSED)
    site.install("best", "Closed = acme_closed:Closed")
    found = find_plugins()
    [problem] = found.problems
    assert problem.startswith('plugin "Closed" is defined several times: entry point Closed of ')
    assert "of acme 1.2" in problem
    assert "of best 1.2" in problem
    assert refusal(of="Closed") == problem
    assert found.registry.make("Other", None, None).made_of == ({}, None)


def test_flag_names_a_factory_of_a_module(site: Site) -> None:
    site.install("acme", acme_closed=CLOSED)
    plugin = made("Closed", "acme_closed:Closed")
    assert plugin.made_of == ({"a": 1}, "handle")
    assert find_plugins(["acme_closed:Closed"]).registry["Closed"].origin == "--plugin acme_closed:Closed"


def test_flag_names_a_module_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
    (site.folder / "here").mkdir()
    (site.folder / "here" / "closed_here.py").write_text(CLOSED)
    monkeypatch.chdir(site.folder / "here")
    monkeypatch.setattr("sys.path", [one for one in sys.path if one not in ("", ".")])
    assert made("Closed", "closed_here:Closed").made_of == ({"a": 1}, "handle")


def test_flag_names_a_factory_of_a_file_which_is_imported_once(site: Site) -> None:
    for name in ("json", "own_name"):
        path = site.folder / f"{name}.py"
        path.write_text(CLOSED + "def more(args, handle):\n    return Closed(args, handle)\n")
        found = find_plugins([f"{path}:Closed", f"{path}:more"])
        first, second = (found.registry.make(name, None, None) for name in ("Closed", "more"))
        assert type(first) is type(second)
    assert "loads" in vars(sys.modules["json"]), "a plugin hides no module"


def test_flag_may_state_the_name(site: Site) -> None:
    site.install("acme", acme_closed=CLOSED)
    assert list(find_plugins(["one=acme_closed:Closed", "two=acme_closed:Closed"]).registry)[-2:] == ["one", "two"]


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("closed", "expected [NAME=]MODULE:FACTORY or [NAME=]FILE.py:FACTORY"),
        ("nothing_of_that_name:Closed", "cannot import: ModuleNotFoundError: "),
        ("not/there.py:Closed", "cannot import: FileNotFoundError: "),
        ("acme_closed:Opened", "cannot import: AttributeError: "),
        ("acme_closed:__doc__", "not callable: None"),
        ("NodeName=acme_closed:Closed", 'plugin "NodeName" already exists: default'),
        ("Known=acme_closed:Closed", 'plugin "Known" already exists: entry point Known of acme 1.2'),
    ],
)
def test_flag_that_cannot_be_used_is_refused(site: Site, flag: str, why: str) -> None:
    site.install("acme", "Known = acme_closed:Closed", acme_closed=CLOSED)
    assert refusal(flag).startswith(f"--plugin {flag}: {why}")


def test_file_that_fails_is_not_kept(site: Site) -> None:
    path = site.folder / "late.py"
    path.write_text("raise ValueError('not yet')\n")
    assert refusal(f"{path}:Closed").endswith("cannot import: ValueError: not yet (late.py:1)")
    path.write_text(CLOSED)
    assert made("Closed", f"{path}:Closed").made_of == ({"a": 1}, "handle")


def test_plugins_log_what_the_scheduler_logs(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("policysched"), "level", logging.INFO)
    path = site.folder / "talkative.py"
    path.write_text(CLOSED)
    find_plugins([f"{path}:Closed"])
    assert logging.getLogger("talkative").level == logging.INFO
    logging.getLogger("talkative").setLevel(logging.NOTSET)
