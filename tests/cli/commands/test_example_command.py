from __future__ import annotations

import errno
import importlib.resources
import json
import os
from pathlib import Path

import pytest

from policysched.app import examples
from tests.cli.conftest import Command
from tests.examples.cases import EXAMPLES

GROUPS = ("tutorial", "tour/*", "cookbook/*", "pod-groups", "queues")
FOLDERS = [str(one.relative_to(EXAMPLES)) for group in GROUPS for one in sorted(EXAMPLES.glob(group)) if one.is_dir()]


def test_examples_are_listed_with_a_description(command: Command) -> None:
    done = command("example")
    assert (done.code, done.problem) == (0, "")
    rows = [line.strip() for line in done.out.splitlines()[2:]]
    assert [row.split()[0] for row in rows] == FOLDERS
    assert all(len(row.split()) > 1 for row in rows)
    assert rows[0].endswith("a cluster of 50 nodes and 400 pods")


def test_examples_are_listed_as_json(command: Command) -> None:
    listed = json.loads(command("example", "-o", "json").out)["items"]
    assert [one["name"] for one in listed] == FOLDERS
    [first] = [one for one in listed if one["name"] == "tutorial"]
    assert first["files"] == ["README.md", "cluster.yaml", "job.yaml", "policy.yaml", "tests.yaml"]


@pytest.mark.parametrize("name", FOLDERS)
def test_an_example_is_written_with_all_its_files(name: str, command: Command, tmp_path: Path) -> None:
    done = command("example", name, "there")
    assert (done.code, done.problem) == (0, "")
    folder = EXAMPLES / name
    files = {
        str(one.relative_to(folder)): one.read_bytes()
        for one in folder.rglob("*")
        if one.is_file() and "__pycache__" not in one.parts
    }
    written = tmp_path / "there"
    assert {str(one.relative_to(written)): one.read_bytes() for one in written.rglob("*") if one.is_file()} == files
    assert done.out == f"there: {', '.join(sorted(files, key=lambda file: Path(file).parts))}\n"


@pytest.mark.parametrize(
    "name", ["tour/04-gpu-models", "04-gpu-models", "gpu-models", "GPU-models", "tour/04-gpu-models/"]
)
def test_the_last_part_of_a_name_is_enough(name: str, command: Command, tmp_path: Path) -> None:
    assert command("example", name).code == 0
    assert (tmp_path / "04-gpu-models" / "policy.yaml").is_file()


def test_names_are_unambiguous() -> None:
    listed = examples.list_examples()
    assert len({name for one in listed for name in one.names}) == sum(len({*one.names}) for one in listed)


def test_a_written_example_is_printed_as_json(command: Command) -> None:
    said = json.loads(command("example", "warm-up", "here", "-o", "json").out)
    assert (said["name"], said["folder"]) == ("cookbook/warm-up", "here")
    assert said["files"] == ["cluster.yaml", "policy.yaml", "tests.yaml"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("tutrial", "did you mean tutorial?"),
        ("tonodname", "did you mean tour/01-tonodename?"),
        ("zone-spread", "did you mean cookbook/soft-zone-spread or cookbook/hard-zone-spread?"),
        ("xyzzy", "run `policysched example` to list all examples"),
        ("", "run `policysched example` to list all examples"),
        ("gpu", "did you mean cookbook/gpu-packing or tour/04-gpu-models?"),
        ("models", "did you mean tour/04-gpu-models?"),
        ("../tests", "run `policysched example` to list all examples"),
    ],
)
def test_an_unknown_name_is_an_error_that_suggests_similar_names(name: str, hint: str, command: Command) -> None:
    done = command("example", name, "there")
    assert (done.code, done.out) == (2, "")
    assert done.problem == f'error: unknown example "{name}"; {hint}\n'


def test_a_folder_with_files_is_refused_without_force(command: Command, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    assert command("example", "warm-up", "there").code == 0
    own = tmp_path / "there" / "own.yaml"
    own.write_text("mine")
    policy = tmp_path / "there" / "policy.yaml"
    policy.write_text("changed")
    done = command("example", "warm-up", "there")
    assert (done.code, done.out) == (2, "")
    assert done.problem == ("error: there is not empty; name another folder, or use --force to overwrite files\n")
    assert policy.read_text() == "changed"
    assert command("example", "warm-up", "there", "--force").code == 0
    assert policy.read_bytes() == (EXAMPLES / "cookbook" / "warm-up" / "policy.yaml").read_bytes()
    assert own.read_text() == "mine"


def test_force_without_a_name_is_refused(command: Command) -> None:
    done = command("example", "--force")
    assert (done.code, done.problem) == (2, "error: --force needs NAME\n")


def test_a_target_that_is_a_file_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in ("file", "file/inside"):
        done = command("example", "warm-up", folder, "--force")
        assert (done.code, done.out) == (2, "")
        assert done.problem in (
            "error: file: cannot write: not a folder\n",
            "error: file/inside: cannot write: not a directory\n",
        )


def test_a_folder_that_cannot_be_written_is_an_error(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, _: bytes) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    done = command("example", "warm-up", "locked")
    assert (done.code, done.problem) == (2, "error: locked/cluster.yaml: cannot write: permission denied\n")


def test_a_name_that_no_folder_can_have_is_an_error(command: Command) -> None:
    done = command("example", "warm-up", "x" * 300)
    assert done.code == 2
    assert done.problem.endswith(": cannot write: file name too long\n")


def test_an_installation_without_examples_says_so(
    monkeypatch: pytest.MonkeyPatch, command: Command, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.resources, "files", lambda _: tmp_path / "policysched")
    examples.list_examples.cache_clear()
    done = command("example")
    examples.list_examples.cache_clear()
    assert (done.code, done.problem) == (2, "error: this installation has no examples; install policysched again\n")
