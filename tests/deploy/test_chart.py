"""The Helm chart: the same objects as the kustomizations, and what its values change."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.releases import chosen
from tests.deploy.build import helm
from tests.deploy.rendering import DEPLOY, NAMESPACE, Json, configuration, container, kustomized, of_kind, one
from tests.deploy.test_kustomize import composed
from tests.e2e.objects import DEFINITION

pytestmark = pytest.mark.kubectl
CHART = DEPLOY / "chart"
VERSION_FLAG = f"--kube-version={chosen().version}"
NAMES = ("policysched", "policysched-webhook")
KEEP = {"helm.sh/resource-policy": "keep"}
APP_VERSION = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
RELEASE = {
    "helm.sh/chart": f"policysched-{APP_VERSION}",
    "app.kubernetes.io/instance": "policysched",
    "app.kubernetes.io/version": APP_VERSION,
    "app.kubernetes.io/managed-by": "Helm",
}
TLS = {"tlsSecret": "policysched-tls"}
"""The Secret of the component service-monitor."""
PARTS = ("networkPolicy", "serviceMonitor", "alerts", "webhook")
ALL: dict[str, Any] = {name: {"enabled": True} for name in PARTS} | TLS


def rendered(
    folder: Path, namespace: str = NAMESPACE, kube_version: str = chosen().version, **values: Any
) -> subprocess.CompletedProcess[str]:
    """Run `helm template` with values."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command: list[str | Path] = [
        helm(),
        "template",
        "policysched",
        str(CHART),
        f"--kube-version={kube_version}",
        f"--namespace={namespace}",
        f"--values={file}",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def released(folder: Path, namespace: str = NAMESPACE, **values: Any) -> list[Json]:
    """Return the chart's objects."""
    done = rendered(folder, namespace, **values)
    assert done.returncode == 0, done.stderr
    return [obj for obj in yaml.safe_load_all(done.stdout) if obj]


def chart(folder: Path, namespace: str = NAMESPACE, **values: Any) -> list[Json]:
    """Return the chart's objects without the hook, and without the labels of the release, which each must have."""
    objects = released(folder, namespace, **values)
    return [_unreleased(obj) for obj in objects if "helm.sh/hook" not in obj["metadata"].get("annotations", {})]


def _unreleased(obj: Json) -> Json:
    """Return an object without the labels of the release."""
    labels = obj["metadata"]["labels"]
    assert labels["app.kubernetes.io/name"] in {"policysched", "policysched-webhook"}
    assert {name: labels.pop(name) for name in RELEASE} == RELEASE
    if obj["kind"] == "CustomResourceDefinition":
        del obj["metadata"]["labels"]
    return obj


def by_name(objects: list[Json]) -> dict[tuple[str, str], Json]:
    """Give objects by what they are called, each of which must be there once."""
    found = {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects}
    assert len(found) == len(objects)
    return found


def _named(deployment: Json) -> dict[str, str]:
    return {"app.kubernetes.io/name": deployment["metadata"]["name"]}


def kept(objects: list[Json]) -> list[Json]:
    """Return the objects of a kustomization and the definition, which stays when the release is uninstalled."""
    return [*objects, {**DEFINITION, "metadata": {**DEFINITION["metadata"], "annotations": KEEP}}]


def test_chart_is_the_kustomization_beside_kube_scheduler(tmp_path: Path) -> None:
    assert by_name(chart(tmp_path)) == by_name(kept(kustomized(DEPLOY / "beside")))


def test_chart_is_the_kustomization_in_kube_scheduler_s_place(tmp_path: Path) -> None:
    assert by_name(chart(tmp_path, inPlace=True)) == by_name(kept(kustomized(DEPLOY / "in-place")))


def test_chart_s_optional_parts_are_the_components(tmp_path: Path) -> None:
    names = dict(zip(PARTS, ("network-policy", "service-monitor", "alerts", "webhook"), strict=True))
    assert {path.name for path in (DEPLOY / "components").iterdir()} == set(names.values())
    assert by_name(chart(tmp_path, **ALL)) == by_name(kept(composed(tmp_path, *names.values())))


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


def test_values_of_pods_reach_both_deployments_and_the_others_the_scheduler_alone(tmp_path: Path) -> None:
    both: dict[str, Any] = {
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"role": "infra"},
        "priorityClassName": "mine",
        "imagePullSecrets": [{"name": "mine"}],
    }
    ours: dict[str, Any] = {
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    }
    digest = f"sha256:{'0' * 64}"
    marks: dict[str, Any] = {
        f"{of}{what}": {f"{of}/{what}": "yes"} for of in ("deployment", "pod") for what in ("Annotations", "Labels")
    }
    image, env = {"repository": "r", "digest": digest}, [{"name": "TZ", "value": "UTC"}]
    objects = chart(tmp_path, **ALL, **both, **ours, **marks, image=image, extraEnv=env)
    deployments = of_kind(objects, "Deployment")
    for deployment in deployments:
        template = deployment["spec"]["template"]
        assert {key: template["spec"][key] for key in both} == both
        assert template["spec"]["containers"][0]["image"] == f"r@{digest}"
        for of, metadata in (("deployment", deployment["metadata"]), ("pod", template["metadata"])):
            assert metadata["annotations"] == marks[f"{of}Annotations"]
            assert metadata["labels"] == {**_named(deployment), **marks[f"{of}Labels"]}
    scheduler, webhook = (one(objects, "Deployment", name)["spec"]["template"]["spec"] for name in NAMES)
    assert {key: scheduler[key] for key in ours} == ours
    assert scheduler["containers"][0]["env"] == env
    assert "topologySpreadConstraints" not in webhook
    assert "env" not in webhook["containers"][0]


def test_empty_values_remove_what_is_the_default(tmp_path: Path) -> None:
    nothing: dict[str, Any] = {"tolerations": [], "affinity": {}, "resources": {}, "priorityClassName": ""}
    spec = one(chart(tmp_path, **nothing), "Deployment")["spec"]["template"]["spec"]
    assert "priorityClassName" not in spec
    assert (spec["tolerations"], spec["affinity"], spec["containers"][0]["resources"]) == ([], {}, {})


def test_service_account_is_the_one_of_the_values(tmp_path: Path) -> None:
    account = {"name": "mine", "annotations": {"role": "arn"}}
    objects = chart(tmp_path, serviceAccount=account)
    made = one(objects, "ServiceAccount")["metadata"]
    assert (made["name"], made["annotations"]) == ("mine", account["annotations"])
    bindings = (*of_kind(objects, "ClusterRoleBinding"), *of_kind(objects, "RoleBinding"))
    assert {subject["name"] for binding in bindings for subject in binding["subjects"]} == {"mine"}
    assert one(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "mine"
    given = chart(tmp_path, serviceAccount={"name": "mine", "create": False})
    assert of_kind(given, "ServiceAccount") == []
    assert one(given, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


def test_release_in_another_namespace_leaves_leases_and_the_authorities_where_they_are(tmp_path: Path) -> None:
    objects = chart(tmp_path, "elsewhere", **ALL)
    left = {"policysched-leases", "policysched-authentication-reader"}
    for obj in objects:
        namespace = obj["metadata"].get("namespace", "elsewhere")
        assert namespace == ("kube-system" if obj["metadata"]["name"] in left else "elsewhere"), obj["metadata"]
        for subject in obj.get("subjects", ()):
            assert subject["namespace"] == "elsewhere"
    texts = {obj["kind"]: yaml.safe_dump(obj) for obj in objects if obj["metadata"]["name"] not in left}
    del texts["CustomResourceDefinition"]
    assert [kind for kind, text in texts.items() if "kube-system" in text] == []
    assert "--namespace=elsewhere" in texts["Deployment"]
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    own = chart(tmp_path, "elsewhere", config=f"{config}leaderElection: {{resourceNamespace: mine}}\n")
    assert one(own, "Role", "policysched-leases")["metadata"]["namespace"] == "mine"
    assert one(own, "RoleBinding", "policysched-leases")["metadata"]["namespace"] == "mine"


def test_monitoring_has_the_labels_that_prometheus_selects_and_a_verified_certificate(tmp_path: Path) -> None:
    labels = {"release": "kube-prometheus-stack"}
    monitoring: dict[str, Any] = {name: {"enabled": True, "labels": labels} for name in ("serviceMonitor", "alerts")}
    objects = chart(tmp_path, **monitoring, tlsSecret="mine")
    for kind in ("ServiceMonitor", "PrometheusRule"):
        assert labels.items() <= one(objects, kind)["metadata"]["labels"].items()
    [endpoint] = one(objects, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["tlsConfig"]["ca"]["secret"]["name"] == "mine"
    volumes = one(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "tls", "secret": {"secretName": "mine"}} in volumes
    bare = rendered(tmp_path, serviceMonitor={"enabled": True})
    assert "serviceMonitor needs tlsSecret" in bare.stderr
    loose = chart(tmp_path, serviceMonitor={"enabled": True, "insecureSkipVerify": True})
    [endpoint] = one(loose, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["tlsConfig"] == {"insecureSkipVerify": True}


def test_hook_is_a_pod_for_the_scheduler_of_the_release(tmp_path: Path) -> None:
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    named = f"{config}profiles: [{{schedulerName: mine}}, {{schedulerName: other}}]\n"
    cases: list[tuple[str, dict[str, Any]]] = [
        ("policysched", {}), ("default-scheduler", {"inPlace": True}), ("default-scheduler", {"config": config}),
        ("mine", {"config": named}),
    ]  # fmt: skip
    for name, values in cases:
        pod = one(released(tmp_path, **values, podLabels={"team": "a"}), "Pod")
        assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
        assert pod["spec"]["schedulerName"] == name
        selected = one(chart(tmp_path), "Service")["spec"]["selector"]
        assert not selected.items() <= pod["metadata"]["labels"].items(), "clients of the Service would reach it"


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
        ({"image": {"digest": "sha256:1"}}, "digest"),
        ({"serviceAccount": {"name": ""}}, "serviceAccount"),
        ({"tolerations": [{"effect": "Never"}]}, "tolerations"),
        ({"affinity": {"nodeAfinity": {}}}, "nodeAfinity"),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, "topologySpreadConstraints"),
        ({"podLabels": {"a": 1}}, "podLabels"),
        ({"extraEnv": [{"value": "1"}]}, "extraEnv"),
        ({"webhook": True}, "webhook"),
        ({"serviceMonitor": {"enable": True}}, "enable"),
    ],
    ids=str,
)
def test_values_that_are_wrong_are_refused(tmp_path: Path, values: dict[str, Any], named: str) -> None:
    done = rendered(tmp_path, **values)
    assert done.returncode != 0
    assert named in done.stderr


def test_schema_has_every_value() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    assert set(schema) == set(values) | {"global"}
    for name, value in values.items():
        if isinstance(value, dict) and "properties" in schema[name]:
            assert set(schema[name]["properties"]) == set(value)


def test_chart_is_of_this_version() -> None:
    content = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert content["home"] in content["sources"]
    assert content["home"] in project["urls"].values()
    assert content["maintainers"] == [{"name": "The policysched authors"}]
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
    command: list[str | Path] = [helm(), "template", "policysched", str(archive), VERSION_FLAG]
    done = subprocess.run([*command, f"--namespace={NAMESPACE}"], capture_output=True, text=True, check=True)
    assert "symbolic link" not in done.stderr
    assert done.stdout == rendered(tmp_path).stdout
    linted = subprocess.run([helm(), "lint", "--strict", str(built), VERSION_FLAG], capture_output=True, check=False)
    assert linted.returncode == 0, linted.stdout
