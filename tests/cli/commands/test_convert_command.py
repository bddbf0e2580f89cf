from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from policysched.model.policy import API_VERSION
from tests.cli.conftest import Command, Write

NEW = (
    "# a comment\n"
    "apiVersion: policysched.io/v1beta1 # its version\n"
    "kind: SchedulingPolicy\n"
    "metadata: {name: p}\n"
    "spec: {}\n"
)
OLD = NEW.replace("v1beta1", "v1alpha1")
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
DIFF = (
    "--- old.yaml\n"
    "+++ old.yaml\n"
    "@@ -1,5 +1,5 @@\n"
    " # a comment\n"
    "-apiVersion: policysched.io/v1alpha1 # its version\n"
    "+apiVersion: policysched.io/v1beta1 # its version\n"
    " kind: SchedulingPolicy\n"
    " metadata: {name: p}\n"
    " spec: {}\n"
)


def test_convert_prints_the_files_as_one_stream_and_changes_none(
    command: Command, write: Write, tmp_path: Path
) -> None:
    done = command(
        "convert", write("old.yaml", OLD), write("new.yaml", NEW), write("pod.yaml", POD.rstrip()), "old.yaml"
    )
    assert (done.code, done.out) == (0, f"{NEW}---\n{NEW}---\n{POD}---\n{NEW}")
    assert done.problem == (
        "converted old.yaml (1 API version)\nconverted old.yaml (1 API version)\n2 files converted, 2 files unchanged\n"
    )
    assert (tmp_path / "old.yaml").read_text("utf-8") == OLD


def test_convert_writes_with_write(command: Command, write: Write, tmp_path: Path) -> None:
    write("old.yaml", f"{OLD}---\n{POD}---\n{OLD}")
    write("new.yaml", NEW)
    done = command("convert", "--write", ".")
    assert (done.code, done.problem) == (0, "")
    assert done.out == "converted old.yaml (2 API versions)\n1 file converted, 1 file unchanged\n"
    assert (tmp_path / "old.yaml").read_text("utf-8") == f"{NEW}---\n{POD}---\n{NEW}"
    assert command("convert", "-w", ".").out == "2 files unchanged\n"
    assert command("convert", "-w", "--output-version", "v1alpha1", "old.yaml").code == 0
    assert (tmp_path / "old.yaml").read_text("utf-8") == f"{OLD}---\n{POD}---\n{OLD}"


def test_convert_writes_the_newest_version_by_default(command: Command, write: Write) -> None:
    assert f"\napiVersion: {API_VERSION} #" in command("convert", write("old.yaml", OLD)).out


def test_convert_checks_and_shows_differences(command: Command, write: Write, tmp_path: Path) -> None:
    write("old.yaml", OLD)
    write("new.yaml", NEW)
    done = command("convert", "--check", "old.yaml", "new.yaml")
    assert (done.code, done.problem) == (1, "")
    assert done.out == "would convert old.yaml (1 API version)\n1 file would be converted, 1 file unchanged\n"
    assert command("convert", "--check", "new.yaml").code == 0
    done = command("convert", "--diff", "old.yaml")
    assert (done.code, done.out) == (0, DIFF)
    assert (tmp_path / "old.yaml").read_text("utf-8") == OLD


@pytest.mark.parametrize(("version", "before", "after"), [("v1beta1", OLD, NEW), ("policysched.io/v1alpha1", NEW, OLD)])
def test_stdin_is_converted_to_stdout(
    command: Command, monkeypatch: pytest.MonkeyPatch, version: str, before: str, after: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(before.encode())))
    done = command("convert", "--output-version", version, "-")
    assert (done.code, done.out) == (0, after)


def test_objects_are_printed_in_a_format(command: Command, write: Write) -> None:
    write("old.yaml", OLD)
    write("both.yaml", f"{POD}---\n{OLD}")
    policy = {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": {"name": "p"}, "spec": {}}
    assert json.loads(command("convert", "-o", "json", "old.yaml").out) == policy
    listed = yaml.safe_load(command("convert", "-o", "yaml", "both.yaml").out)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert listed["items"] == [yaml.safe_load(POD), policy]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--output-version", "v1", "old.yaml"), 'unknown API version "v1"; the versions are policysched.io/v1beta1, '),
        (("--write", "--diff", "old.yaml"), "--write and --diff cannot be combined"),
        (("--check", "-o", "json", "old.yaml"), "--check and --output cannot be combined"),
        (("--write", "-"), "--write cannot be used with standard input"),
        (("none.yaml",), "none.yaml: no such file"),
        (
            ("-o", "json", "later.yaml"),
            'later.yaml:1:13: unknown API version "policysched.io/v2"; expected policysched',
        ),
        (
            ("later.yaml",),
            'later.yaml:1:13: unknown API version "policysched.io/v2"; expected policysched.io/v1beta1, ',
        ),
    ],
)
def test_bad_input_is_an_error_that_names_it(
    command: Command, write: Write, arguments: tuple[str, ...], problem: str
) -> None:
    write("old.yaml", OLD)
    write("later.yaml", "apiVersion: policysched.io/v2\nkind: SchedulingPolicy\nmetadata: {name: p}\n")
    done = command("convert", *arguments)
    assert (done.code, done.problem.partition("error: ")[2][: len(problem)]) == (2, problem)


def test_file_with_an_unknown_version_stays_and_others_are_converted(
    command: Command, write: Write, tmp_path: Path
) -> None:
    later = f"{OLD}---\n{OLD.replace('v1alpha1', 'v2')}"
    write("later.yaml", later)
    write("old.yaml", OLD)
    done = command("convert", "-w", "later.yaml", "old.yaml")
    assert (done.code, done.out) == (2, "converted old.yaml (1 API version)\n1 file converted, 1 file failed\n")
    assert (tmp_path / "later.yaml").read_text("utf-8") == later
    assert (tmp_path / "old.yaml").read_text("utf-8") == NEW
