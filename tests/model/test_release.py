"""The table of Kubernetes releases: names, the nearest release of a server."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from policysched.errors import UsageError
from policysched.model.release import DEFAULT, RELEASES, V1_36, V1_37, V1_38, Release
from policysched.model.release_choice import first_accepted, release_named, release_of_server

PACKAGE = Path(__file__).parents[2] / "policysched"
COMPARISON = re.compile(r"V1_\d\d|release\.(version|minor|is_preview) *(==|!=|<|>|in)")


def test_releases_are_known_by_their_minor() -> None:
    assert [(minor, release.minor) for minor, release in RELEASES.items()] == [(one, one) for one in RELEASES]
    assert release_named("1.37") is V1_37
    assert release_named("auto") is DEFAULT
    assert not DEFAULT.is_preview


@pytest.mark.parametrize("minor", ["1.34", "1.37.9", "latest", ""])
def test_other_minors_are_refused_with_the_known_ones(minor: str) -> None:
    with pytest.raises(UsageError, match=rf'"{re.escape(minor)}" is not one of auto, 1\.36, 1\.37, 1\.38$'):
        release_named(minor)


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("v1.36.0+k3s1", V1_36),
        ("v1.37.9-gke.1", V1_37),
        ("v1.38.0", V1_38),
    ],
)
def test_a_server_is_followed_by_its_minor(version: str, release: object) -> None:
    assert release_of_server(version) == (release, "")


@pytest.mark.parametrize(("version", "release"), [("v1.35.9", V1_36), ("v1.39.0", V1_38), ("v2.0.0", V1_38)])
def test_an_unknown_server_is_followed_by_the_nearest_release_with_a_warning(version: str, release: object) -> None:
    found, why = release_of_server(version)
    assert found is release
    assert version in why
    assert found.minor in why


@pytest.mark.parametrize("version", ["", "main", "kind", "v1", f"v1.{'9' * 5000}", "v\u0661.\u0663\u0667"])
def test_a_server_without_a_version_is_followed_by_the_default_release(version: str) -> None:
    found, why = release_of_server(version)
    assert found is DEFAULT
    assert "reports no version" in why


@pytest.mark.parametrize(
    ("release", "version", "skew"),
    [
        (V1_37, "v1.37.9+k3s1", 0),
        (V1_36, "v1.37.0-alpha.1", 1),
        (V1_37, "v1.36.5", -1),
        (V1_36, "v1.39.0", 3),
        (V1_37, "", 0),
        (V1_37, "main", 0),
    ],
)
def test_skew_is_the_number_of_minors_by_which_a_server_is_newer(release: Release, version: str, skew: int) -> None:
    assert release.skew(version) == skew


def reading(*accepted: str) -> Callable[[Release], str]:
    """Return a function that accepts these minors."""

    def read(release: Release) -> str:
        if release.minor not in accepted:
            raise UsageError(f"not in {release.minor}")
        return release.minor

    return read


@pytest.mark.parametrize(
    ("stated", "accepted", "found"),
    [
        ("auto", ["1.38"], "1.38"),
        ("auto", ["1.36"], "1.36"),
        ("auto", [*RELEASES], DEFAULT.minor),
        ("1.37", ["1.37"], "1.37"),
    ],
)
def test_first_release_that_reads_an_input_is_chosen(stated: str, accepted: list[str], found: str) -> None:
    assert first_accepted(stated, reading(*accepted)) == found


@pytest.mark.parametrize(
    ("stated", "accepted", "said"),
    [
        ("auto", [], f"not in {DEFAULT.minor}"),
        ("1.36", ["1.37"], r"not in 1\.36"),
        ("1.34", [*RELEASES], r'"1\.34" is not one of'),
    ],
)
def test_input_that_no_release_reads_is_refused(stated: str, accepted: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        first_accepted(stated, reading(*accepted))


def test_no_other_module_compares_versions() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        if path.name != "release.py"
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if COMPARISON.search(line)
    ]
    assert found == []
