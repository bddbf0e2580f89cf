"""The chart, the kustomizations and the CRD of a release are those of the repository, with the released image."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from policysched import __version__
from tests.controlplane.releases import chosen
from tests.deploy.build import helm
from tests.deploy.rendering import DEPLOY, NAMESPACE, OVERLAYS, container, kustomized
from tests.deploy.test_chart import by_name, released
from tests.e2e.objects import DEFINITION
from tools.release.building import IMAGE

pytestmark = pytest.mark.kubectl
NAME = f"policysched-{__version__}"


def test_chart_has_the_objects_of_the_repository_s_chart_with_the_released_image(built: Path, tmp_path: Path) -> None:
    chart = str(built / f"{NAME}.tgz")
    command = [
        str(helm()),
        "template",
        "policysched",
        chart,
        f"--kube-version={chosen().version}",
        f"--namespace={NAMESPACE}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    objects = [obj for obj in yaml.safe_load_all(done.stdout) if obj]
    assert container(objects)["image"] == f"{IMAGE}:{__version__}"
    assert by_name(objects) == by_name(released(tmp_path, image={"repository": IMAGE}))
    linted = subprocess.run([str(helm()), "lint", "--strict", chart], capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout


def test_kustomizations_are_those_of_the_repository(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / f"{NAME}-kustomize.tgz") as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / NAME
    for overlay in OVERLAYS:
        assert kustomized(unpacked / "deploy" / overlay) == kustomized(DEPLOY / overlay)
    for component in (DEPLOY / "components").iterdir():
        assert (unpacked / "deploy" / "components" / component.name / "kustomization.yaml").is_file()
    assert kustomized(unpacked / "crds") == [DEFINITION]
    assert {path.name for path in unpacked.iterdir()} == {"LICENSE", "NOTICE", "crds", "deploy"}


def test_definition_is_the_repository_s(built: Path) -> None:
    assert [*yaml.safe_load_all((built / f"{NAME}-crds.yaml").read_text("utf-8"))] == [DEFINITION]
