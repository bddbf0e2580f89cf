"""The files of a release are whole, name one version, and are the same bytes wherever they are built."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from policysched import __version__
from tests.deploy.image import IMAGE_PYTHON, LOCKS
from tests.deploy.test_image import locked
from tools.release.__main__ import main
from tools.release.building import CHECKSUMS, NOTES
from tools.release.checking import ReleaseError, check_versions
from tools.release.tracked import ROOT, build_time, copy_tracked

NAME = f"policysched-{__version__}"
PYTHON = {f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz"}
CLUSTER = {f"{NAME}.tgz", f"{NAME}-kustomize.tgz", f"{NAME}-crds.yaml", f"{NAME}.spdx.json"}


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def checksums(folder: Path) -> dict[str, str]:
    """Return the digests in the list of a folder, by the names of the files."""
    lines = [line.split("  ") for line in (folder / CHECKSUMS).read_text("utf-8").splitlines()]
    return {name: digest for digest, name in lines}


def test_release_has_its_files_and_their_checksums(built: Path) -> None:
    found = contents(built)
    assert set(found) == {*PYTHON, *CLUSTER, CHECKSUMS, NOTES}
    assert checksums(built) == {name: hashlib.sha256(found[name]).hexdigest() for name in PYTHON | CLUSTER}


def test_second_build_elsewhere_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    tree = tmp_path / "another place"
    copy_tracked(tree)
    for path in tree.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() or os.access(path, os.X_OK) else 0o600)
            os.utime(path, (0, 1_234_567_890))
    (tree / "policysched" / "untracked.py").write_text("raise SystemExit", "utf-8")
    for command in (["init", "-q"], ["add", "-A", "--", ".", ":!policysched/untracked.py"]):
        subprocess.run(["git", *command], cwd=tree, check=True)
    environment = {
        "SOURCE_DATE_EPOCH": str(build_time()), "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7",
        "PYTHONPATH": str(tree), "PATH": os.environ["PATH"],
    }  # fmt: skip
    command = [sys.executable, "-m", "tools.release", str(tmp_path / "files")]
    done = subprocess.run(command, cwd=tree, env=environment, umask=0o077, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{NAME}.spdx.json" in done.stdout
    assert contents(tmp_path / "files") == contents(built)


def test_source_archive_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(build_time())}
    subprocess.run(command, cwd=tmp_path / NAME, env=environment, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    assert wheel.read_bytes() == (built / wheel.name).read_bytes()


def test_wheel_and_source_archive_pass_the_check_of_a_package_index(built: Path) -> None:
    files = [str(built / name) for name in sorted(PYTHON)]
    command = [sys.executable, "-m", "twine", "check", "--strict", *files]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("PASSED") == 2


def test_bill_of_materials_names_the_wheel_and_what_the_image_installs(built: Path) -> None:
    document = parse_file(str(built / f"{NAME}.spdx.json"))
    assert document.creation_info.spdx_version == "SPDX-2.3"
    assert validate_full_spdx_document(document) == []
    [main, *others] = document.packages
    wheel = (built / f"{NAME}-py3-none-any.whl").read_bytes()
    assert (main.name, main.version) == ("policysched", __version__)
    assert [one.value for one in main.checksums] == [hashlib.sha256(wheel).hexdigest()]
    assert {one.name: one.version for one in others} == locked(LOCKS[0], IMAGE_PYTHON)
    ends = {(one.spdx_element_id, one.related_spdx_element_id) for one in document.relationships}
    assert ends >= {(main.spdx_id, one.spdx_id) for one in others}
    for package in document.packages:
        [reference] = package.external_references
        assert reference.locator == f"pkg:pypi/{package.name}@{package.version}"


def test_notes_are_the_changelog_s_section(built: Path) -> None:
    notes = (built / NOTES).read_text("utf-8")
    assert notes in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert notes.startswith("The first version.")
    assert "\n## " not in notes
    assert "[0.1.0]:" not in notes


@pytest.mark.parametrize("lock", ["requirements-release.lock"])
def test_packages_that_build_a_release_are_pinned_as_the_image_s(lock: str) -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    pinned, image = locked(lock, IMAGE_PYTHON), locked(LOCKS[1], IMAGE_PYTHON)
    assert {one.partition(">=")[0] for one in groups["release"]} <= set(pinned)
    assert image.items() <= pinned.items(), "one wheel is released and installed in the image"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files that name the version, with a date in the changelog."""
    for name in ("pyproject.toml", "CHANGELOG.md", "deploy/chart/Chart.yaml", "deploy/base/deployment.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    _replace(tmp_path / "CHANGELOG.md", f"## [{__version__}] - unreleased", f"## [{__version__}] - 2026-12-01")
    return tmp_path


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_tag_of_the_version_is_taken(tree: Path) -> None:
    assert check_versions(tree, f"v{__version__}") == __version__


@pytest.mark.parametrize(
    ("path", "old", "new", "tag", "said"),
    [
        ("deploy/chart/Chart.yaml", "\nversion: ", "\nversion: 9", "", "Chart.yaml: version"),
        ("deploy/chart/Chart.yaml", "appVersion: ", "appVersion: 9", "", "Chart.yaml: appVersion"),
        ("deploy/base/deployment.yaml", "policysched:0", "policysched:9", "", "deployment.yaml: image"),
        ("CHANGELOG.md", f"## [{__version__}]", "## [9.9.9]", "", "no section"),
        ("CHANGELOG.md", "2026-12-01", "unreleased", f"v{__version__}", 'no date but "unreleased"'),
        ("CHANGELOG.md", "2026-12-01", "2026-12-01", "v9.9.9", 'the tag is "9.9.9"'),
        ("CHANGELOG.md", "2026-12-01", "2026-12-01", "main", 'the tag is "main"'),
    ],
)
def test_tree_that_does_not_agree_is_refused(tree: Path, path: str, old: str, new: str, tag: str, said: str) -> None:
    _replace(tree / path, old, new)
    with pytest.raises(ReleaseError, match=said.replace("(", r"\(")):
        check_versions(tree, tag)


def test_folder_with_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    monkeypatch.setattr(sys, "argv", ["release", str(tmp_path)])
    assert main() == 1
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
