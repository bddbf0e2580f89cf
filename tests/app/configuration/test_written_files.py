"""Configuration files, good and bad ones: what is completed in them, and every fault with its place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.app.configuration.files import check_files, read_file
from policysched.app.configuration.printing import to_dict, to_yaml
from policysched.app.configuration.reading import load_configuration
from policysched.errors import UsageError
from tests.app.configuration.files import expected, files


def at(value: Any, path: str) -> Any:
    """Follow a path; None where it leads nowhere."""
    for index, name in re.findall(r"\[(\d+)\]|([^.\[\]]+)", path):
        try:
            value = value[int(index)] if index else value[name]
        except (KeyError, IndexError):
            return None
    return value


def by_name(path: Path) -> str:
    return path.stem


def test_there_are_many_of_both_kinds() -> None:
    assert len(files("good")) >= 30
    assert len(files("bad")) >= 50
    assert all(expected(path) for kind in ("good", "bad") for path in files(kind))


@pytest.mark.parametrize("path", files("good"), ids=by_name)
def test_good_file_is_completed_as_it_says(path: Path) -> None:
    assert check_files([str(path)]).faults == ()
    made = to_dict(read_file(str(path)).completed)
    for line in expected(path):
        field, _, value = line.partition(" ")
        assert at(made, field) == json.loads(value), field


@pytest.mark.parametrize("path", files("good"), ids=by_name)
def test_completed_form_of_a_good_file_reads_as_itself_but_for_what_is_enabled_by_default(path: Path) -> None:
    made = to_dict(read_file(str(path)).completed)
    printed = yaml.safe_load(to_yaml(read_file(str(path)).completed))
    again = to_dict(load_configuration(printed).completed)
    assert printed == made
    for one in (made, again):
        for profile in one["profiles"]:
            profile["plugins"]["multiPoint"]["enabled"].sort(key=lambda plugin: plugin["name"])
    assert {**again, "profiles": 0} == {**made, "profiles": 0}


@pytest.mark.parametrize("path", files("bad"), ids=by_name)
def test_bad_file_is_refused_by_all_its_faults(path: Path) -> None:
    prefix = f"{path}:"
    try:
        said = [str(one) for one in check_files([str(path)]).faults]
    except UsageError as error:
        said = [str(error)]
    assert [line.removeprefix(prefix) for line in said] == expected(path)


@pytest.mark.parametrize("path", files("bad"), ids=by_name)
def test_bad_file_cannot_be_used(path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        read_file(str(path))
    assert any(line.split(": ")[0] in str(refused.value) for line in expected(path))
