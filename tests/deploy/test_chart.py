"""The Helm chart: the same objects as the kustomizations, and what its values change."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.build import helm
from tests.deploy.rendering import DEPLOY, NAMESPACE, Json, configuration, container, kustomized, of_kind, one
from tests.deploy.test_kustomize import composed
from tests.e2e.objects import DEFINITION

pytestmark = pytest.mark.kubectl
CHART = DEPLOY / "chart"
KEEP = {"helm.sh/resource-policy": "keep"}


def rendered(folder: Path, namespace: str = NAMESPACE, **values: Any) -> subprocess.CompletedProcess[str]:
    """Run `helm template` with values."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command: list[str | Path] = [
        helm(),
        "template",
        "policysched",
        str(CHART),
        f"--namespace={namespace}",
        f"--values={file}",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def chart(folder: Path, **values: Any) -> list[Json]:
    """Give the chart's objects."""
    done = rendered(folder, **values)
    assert done.returncode == 0, done.stderr
    return [obj for obj in yaml.safe_load_all(done.stdout) if obj]


def by_name(objects: list[Json]) -> dict[tuple[str, str], Json]:
    """Give objects by what they are called, each of which must be there once."""
    found = {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects}
    assert len(found) == len(objects)
    return found


def kept(objects: list[Json]) -> list[Json]:
    """Return the objects of a kustomization and the definition, which stays when the release is uninstalled."""
    return [*objects, {**DEFINITION, "metadata": {**DEFINITION["metadata"], "annotations": KEEP}}]


def test_chart_is_the_kustomization_beside_kube_scheduler(tmp_path: Path) -> None:
    assert by_name(chart(tmp_path)) == by_name(kept(kustomized(DEPLOY / "beside")))


def test_chart_is_the_kustomization_in_kube_scheduler_s_place(tmp_path: Path) -> None:
    assert by_name(chart(tmp_path, inPlace=True)) == by_name(kept(kustomized(DEPLOY / "in-place")))


def test_chart_s_optional_parts_are_the_components(tmp_path: Path) -> None:
    names = {"networkPolicy": "network-policy", "serviceMonitor": "service-monitor"}
    names |= {"alerts": "alerts", "webhook": "webhook"}
    assert {path.name for path in (DEPLOY / "components").iterdir()} == set(names.values())
    ours = chart(tmp_path, **dict.fromkeys(names, True))
    assert by_name(ours) == by_name(kept(composed(tmp_path, *names.values())))


def test_values_change_the_deployment_and_nothing_else(tmp_path: Path) -> None:
    resources = {"requests": {"cpu": "2", "memory": "3Gi"}}
    values: dict[str, Any] = {
        "replicas": 3,
        "image": {"repository": "registry.example.com/policysched", "tag": "1", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "mine"}],
        "resources": resources,
        "nodeSelector": {"role": "infra"},
        "extraArgs": ["--metrics-file=/tmp/values"],
    }
    before, after = by_name(chart(tmp_path)), by_name(chart(tmp_path, **values))
    assert {name for name in before if before[name] != after[name]} == {("Deployment", "policysched")}
    deployment = after["Deployment", "policysched"]["spec"]
    pod = deployment["template"]["spec"]
    ours = container(list(after.values()))
    assert (deployment["replicas"], pod["nodeSelector"]) == (3, {"role": "infra"})
    assert pod["imagePullSecrets"] == [{"name": "mine"}]
    assert (ours["image"], ours["imagePullPolicy"]) == ("registry.example.com/policysched:1", "Always")
    assert ours["resources"] == resources
    assert ours["args"] == [*container(list(before.values()))["args"], "--metrics-file=/tmp/values"]


def test_configuration_of_one_s_own_has_the_role_for_its_lease(tmp_path: Path) -> None:
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    objects = chart(tmp_path, config=f"{config}leaderElection: {{resourceName: mine}}\n")
    assert "resourceName: mine" in configuration(objects)
    assert one(objects, "Role")["rules"][0]["resourceNames"] == ["mine"]
    plain = chart(tmp_path, config=config)
    assert one(plain, "Role")["rules"][0]["resourceNames"] == ["kube-scheduler"], "as the configuration's default"


def test_single_process_has_no_budget_that_keeps_it_on_its_node(tmp_path: Path) -> None:
    assert of_kind(chart(tmp_path, replicas=1), "PodDisruptionBudget") == []


def test_definition_may_be_left_to_others(tmp_path: Path) -> None:
    assert of_kind(chart(tmp_path, definition=False), "CustomResourceDefinition") == []


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replica": 2}, "replica"),
        ({"replicas": 0}, "replicas"),
        ({"extraArgs": ["v=2"]}, "extraArgs"),
        ({"image": {"repository": ""}}, "repository"),
        ({"inPlace": "yes"}, "inPlace"),
    ],
    ids=str,
)
def test_values_that_are_wrong_are_refused(tmp_path: Path, values: dict[str, Any], named: str) -> None:
    done = rendered(tmp_path, **values)
    assert done.returncode != 0
    assert named in done.stderr


def test_another_namespace_is_refused(tmp_path: Path) -> None:
    done = rendered(tmp_path, namespace="elsewhere")
    assert done.returncode != 0
    assert "--namespace kube-system" in done.stderr


def test_chart_is_of_this_version() -> None:
    content = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert container(kustomized(DEPLOY / "beside"))["image"] == f"policysched:{content['appVersion']}"
    assert content["version"] == content["appVersion"]


def test_packed_chart_is_whole(tmp_path: Path) -> None:
    subprocess.run(["make", "chart", f"DIST={tmp_path}"], cwd=DEPLOY.parent, capture_output=True, check=True)
    built = tmp_path / "policysched"
    assert not [path for path in built.rglob("*") if path.is_symlink()]
    packed = subprocess.run(
        [helm(), "package", str(built), f"--destination={tmp_path}"], capture_output=True, text=True, check=False
    )
    assert packed.returncode == 0, packed.stderr
    assert "symbolic link" not in packed.stderr
    [archive] = tmp_path.glob("*.tgz")
    command: list[str | Path] = [helm(), "template", "policysched", str(archive), f"--namespace={NAMESPACE}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert by_name(list(yaml.safe_load_all(done.stdout))) == by_name(chart(tmp_path))
