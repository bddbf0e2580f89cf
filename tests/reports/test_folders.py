"""Folders hold more than policies and objects: files of comments, Kustomizations, values and templates of charts."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

import policysched

from .conftest import FOLDER, Command

POD = "c15-pod.yaml"


def test_files_of_comments_in_a_folder_are_skipped(command: Command) -> None:
    assert command("check", "c01pol").out == "1 policy: 0 errors, 0 warnings\n"
    assert command("plan", "--cluster", "c01dir", "--cluster", POD, "--policy", "c01pol").code == 0
    done = command("dry-run", "--cluster", "c01dir", "--policy", "c01pol", "--pod", POD, "-o", "json")
    assert (done.code, done.problem, done.value["selected"]) == (0, "", "n1")
    assert command("fmt", "--check", "c01pol").code == 0


@pytest.mark.parametrize("folder", ["c27-policies", "c27b"])
def test_kustomizations_in_a_folder_are_ignored_with_a_note(command: Command, folder: str) -> None:
    note = (
        f"note: ignored {folder}/kustomization.yaml: to use its output, run `kubectl kustomize {folder}` "
        "and pipe it into the command as file `-`\n"
    )
    done = command("check", folder)
    assert (done.code, done.out, done.problem) == (0, "1 policy: 0 errors, 0 warnings\n", note)
    done = command("dry-run", "--cluster", "nodes3.yaml", "--policy", folder, "--pod", POD, "-o", "json")
    assert (done.code, done.problem, done.value["selected"]) == (0, note, "n1")
    assert note in command("plan", "--cluster", "nodes3.yaml", "--cluster", POD, "--policy", folder).problem


def test_a_folder_with_nothing_but_a_kustomization_names_the_command_that_builds_it(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [../base]\n")
    build = f"to use its output, run `kubectl kustomize {tmp_path}` and pipe it into the command as file `-`\n"
    done = command("check", str(tmp_path))
    note = f"note: ignored {tmp_path}/kustomization.yaml: {build}"
    assert (done.code, done.problem) == (2, f"{note}error: no SchedulingPolicy in {tmp_path}\n")
    done = command("dry-run", "--cluster", "nodes3.yaml", "--policy", str(tmp_path), "--pod", POD)
    assert (done.code, done.problem) == (2, f"error: {tmp_path}: no Kubernetes objects in the folder; {build}")


def test_values_and_other_kinds_in_a_folder_are_ignored_with_a_note(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    shutil.copytree(FOLDER / "c01pol", folder)
    (folder / "values.yaml").write_text("replicas: 2\nzone: a\n")
    (folder / "nodes.yaml").write_text((FOLDER / "nodes3.yaml").read_text())
    done = command("dry-run", "--cluster", "nodes3.yaml", "--policy", str(folder), "--pod", POD)
    assert done.problem == (
        f"note: ignored {folder}/values.yaml: no Kubernetes objects\n"
        "note: ignored objects of other kinds beside the policies: Node\n"
    )
    done = command("check", str(folder))
    assert (done.code, done.problem) == (0, f"note: ignored {folder}/values.yaml: no Kubernetes objects\n")


def test_streams_of_policies_and_other_kinds_are_read_with_a_note(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = (FOLDER / "pol.yaml").read_text() + "---\n" + (FOLDER / "nodes3.yaml").read_text()
    for ask in (
        ("dry-run", "--cluster", "nodes3.yaml", "--pod", POD),
        ("plan", "--cluster", "nodes3.yaml", "--cluster", POD),
        ("why", "web", "--cluster", "nodes3.yaml", "--cluster", POD),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stream.encode())))
        done = command(*ask, "--policy", "-", "-o", "json")
        assert done.code in {0, 1}
        assert done.problem == "note: ignored objects of other kinds beside the policies: Node\n"
    assert policysched.dry_run(FOLDER / "nodes3.yaml", FOLDER / POD, policies=stream).selected == "n1"


def test_a_folder_without_a_policy_is_an_error(command: Command, tmp_path: Path) -> None:
    shutil.copy(FOLDER / "nodes3.yaml", tmp_path)
    done = command("plan", "--cluster", "nodes3.yaml", "--cluster", POD, "--policy", str(tmp_path))
    assert (done.code, done.problem) == (2, f"error: {tmp_path}: no SchedulingPolicy in the folder\n")


SUBFOLDERS = "subfolders are not read: base, overlays"


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """Make a folder with a policy, and with subfolders as of kustomize, a hidden one and one without objects."""
    for name in ("base", "overlays/prod", ".git", "docs"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(FOLDER / "pol.yaml", tmp_path)
    for name in ("base", "overlays/prod", ".git"):
        (tmp_path / name / "broken.yaml").write_text("kind: SchedulingPolicy\nmetadata: {name: b\n")
    (tmp_path / "docs/index.md").write_text("# Policies\n")
    return tmp_path


@pytest.mark.parametrize(
    "ask",
    [
        ("check", "{}"),
        ("fmt", "--check", "{}"),
        ("plan", "--cluster", "nodes3.yaml", "--cluster", POD, "--policy", "{}"),
        ("plan", "--cluster", "nodes3.yaml", "--cluster", "{}", "--cluster", POD, "--policy", "pol.yaml"),
        ("dry-run", "--cluster", "nodes3.yaml", "--pod", POD, "--policy", "{}"),
        ("why", "web", "--cluster", "nodes3.yaml", "--cluster", POD, "--policy", "{}"),
        ("check", "pol.yaml", "--cluster", "nodes3.yaml", "--cluster", "{}"),
    ],
)
def test_subfolders_are_named_and_not_read(command: Command, nested: Path, ask: tuple[str, ...]) -> None:
    done = command(*(one.format(nested) for one in ask))
    assert done.code in {0, 1}
    assert done.problem.splitlines().count(f"note: {nested}: {SUBFOLDERS}") == 1


def test_a_folder_with_nothing_but_subfolders_is_an_error_that_names_them(command: Command, nested: Path) -> None:
    (nested / "pol.yaml").unlink()
    missing = f"error: {nested}: no .yaml, .yml or .json file in the folder; {SUBFOLDERS}\n"
    assert command("check", str(nested)).problem.startswith(missing)
    assert command("fmt", "--check", str(nested)).problem == missing
    shutil.copy(FOLDER / "nodes3.yaml", nested)
    done = command("check", str(nested))
    assert (done.code, done.problem) == (
        2,
        f"note: {nested}: {SUBFOLDERS}\nerror: no SchedulingPolicy in {nested}\n",
    )
    done = command("plan", "--cluster", "nodes3.yaml", "--cluster", POD, "--policy", str(nested))
    assert (done.code, done.problem) == (2, f"error: {nested}: no SchedulingPolicy in the folder; {SUBFOLDERS}\n")


def test_the_folder_of_a_chart_names_the_command_that_renders_it(command: Command, tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: policies\nversion: 0.1.0\n")
    (tmp_path / "values.yaml").write_text("zone: a\n")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/policy.yaml").write_text("kind: SchedulingPolicy\nmetadata: {name: {{ .Values.zone }}}\n")
    build = f"run `helm template {tmp_path}` and pipe it into the command as file `-`"
    done = command("check", str(tmp_path))
    assert (done.code, f"note: ignored {tmp_path}/Chart.yaml: to use its output, {build}\n" in done.problem) == (
        2,
        True,
    )
    assert f"note: {tmp_path}: subfolders are not read: templates\n" in done.problem
    assert build in command("plan", "--cluster", "nodes3.yaml", "--policy", str(tmp_path)).problem


def test_a_file_that_is_named_keeps_its_error(command: Command) -> None:
    for name, problem in (
        ("c01pol/c01-comments-only.yaml", "no objects"),
        ("c27b/kustomization.yaml", "object has no kind"),
        ("nodes3.yaml", "expected a SchedulingPolicy, got a Node"),
    ):
        done = command("dry-run", "--cluster", "nodes3.yaml", "--policy", name, "--pod", POD)
        assert (done.code, problem in done.problem) == (2, True)


def test_an_object_without_a_kind_in_a_folder_is_an_error(command: Command, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("apiVersion: policysched.io/v1alpha1\nmetadata: {name: p}\nspec: {}\n")
    done = command("check", str(tmp_path))
    assert (done.code, "object has no kind" in done.problem) == (2, True)


@pytest.mark.parametrize(
    "text",
    [
        "{{- if .Values.zone }}\nkind: SchedulingPolicy\n{{- end }}\n",
        "kind: SchedulingPolicy\nmetadata: {{ .Values.a }}\n",
    ],
)
def test_a_template_that_is_not_rendered_is_recognised(command: Command, tmp_path: Path, text: str) -> None:
    (tmp_path / "policy.yaml").write_text(text)
    for arguments in (("check", str(tmp_path)), ("plan", "--cluster", "nodes3.yaml", "--policy", str(tmp_path))):
        done = command(*arguments)
        assert done.code == 2
        assert "this is a Helm template that is not rendered; run `helm template` and use its output" in done.problem


def test_a_folder_without_objects_is_an_error(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    done = command("dry-run", "--cluster", str(tmp_path), "--pod", POD)
    assert (done.code, done.problem) == (2, f"error: {tmp_path}: no Kubernetes objects in the folder\n")
