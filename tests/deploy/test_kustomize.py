"""What the kustomizations of `deploy/` come to, before any cluster sees it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from policysched.cli import execute
from tests.deploy.rendering import (
    DEPLOY,
    NAMESPACE,
    OVERLAYS,
    Json,
    configuration,
    container,
    kustomized,
    mounted,
    of_kind,
    one,
    static_pod,
)

pytestmark = pytest.mark.kubectl
ROOT = DEPLOY.parent
PORT = 10259
CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding"}


def composed(folder: Path, *components: str) -> list[Json]:
    """Give the objects of a user's own kustomization, with optional parts."""
    parts = [str(Path("..") / "deploy" / "components" / name) for name in components]
    (folder / "deploy").symlink_to(DEPLOY)
    mine = folder / "mine"
    mine.mkdir()
    content = {"resources": ["../deploy/beside"], "components": parts}
    (mine / "kustomization.yaml").write_text(yaml.safe_dump(content))
    return kustomized(mine)


@pytest.fixture(params=OVERLAYS[:2])
def objects(request: pytest.FixtureRequest) -> list[Json]:
    return kustomized(DEPLOY / request.param)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_overlay_stays_in_its_namespace_and_leaves_out_the_definition(overlay: str) -> None:
    objects = kustomized(DEPLOY / overlay)
    assert not of_kind(objects, "CustomResourceDefinition"), "deleting an overlay would delete all policies"
    for obj in objects:
        namespace = None if obj["kind"] in CLUSTER_WIDE else NAMESPACE
        assert obj["metadata"].get("namespace") == namespace, obj["metadata"]
        assert obj["metadata"]["name"].startswith("policysched")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_lease_of_the_configuration_is_the_one_that_the_role_is_for(overlay: str) -> None:
    objects = kustomized(DEPLOY / overlay)
    text = (DEPLOY / overlay / "scheduler.yaml").read_text() if overlay == "static-pod" else configuration(objects)
    [names] = [
        rule["resourceNames"] for rule in one(objects, "Role", "policysched-leases")["rules"] if "get" in rule["verbs"]
    ]
    content = yaml.safe_load(text)
    assert names == [content["leaderElection"]["resourceName"]]
    in_place = [profile["schedulerName"] for profile in content["profiles"]] == ["default-scheduler"]
    assert in_place is (names == ["kube-scheduler"])


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("*/scheduler.yaml")), ids=lambda path: path.parent.name)
def test_configuration_is_one_that_the_scheduler_takes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["config", "check", str(path)]) == 0, capsys.readouterr()


def test_everything_that_selects_selects_the_pods(objects: list[Json]) -> None:
    deployment = one(objects, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    selectors = [
        deployment["spec"]["selector"]["matchLabels"],
        one(objects, "Service")["spec"]["selector"],
        one(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ]
    assert all(selector and selector.items() <= labels.items() for selector in selectors)
    assert deployment["spec"]["replicas"] > one(objects, "PodDisruptionBudget")["spec"]["minAvailable"]


def test_ports_and_probes_are_those_of_the_secure_port(objects: list[Json]) -> None:
    ours = container(objects)
    assert f"--secure-port={PORT}" in ours["args"]
    assert [port["containerPort"] for port in ours["ports"] if port["name"] == "https"] == [PORT]
    [served] = one(objects, "Service")["spec"]["ports"]
    assert (served["port"], served["targetPort"]) == (PORT, "https")
    probes = {name: probe["httpGet"] for name, probe in ours.items() if name.endswith("Probe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/livez",
        "livenessProbe": "/livez",
        "readinessProbe": "/readyz",
    }
    assert all((probe["port"], probe["scheme"]) == ("https", "HTTPS") for probe in probes.values())


def test_configuration_is_mounted_where_the_scheduler_looks(objects: list[Json]) -> None:
    [path] = [arg.removeprefix("--config=") for arg in container(objects)["args"] if arg.startswith("--config=")]
    assert path in mounted(objects)
    spec = one(objects, "Deployment")["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == one(objects, "ServiceAccount")["metadata"]["name"]


def test_image_is_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    ours = container(kustomized(DEPLOY / "beside"))
    assert ours["image"] == f"policysched:{version}" == static_pod()["spec"]["containers"][0]["image"]


def test_static_pod_mounts_what_its_configuration_names() -> None:
    spec = static_pod()["spec"]
    [ours] = spec["containers"]
    paths = {volume["name"]: volume.get("hostPath", {}).get("path") for volume in spec["volumes"]}
    mounted = {mount["mountPath"]: paths[mount["name"]] for mount in ours["volumeMounts"]}
    config = yaml.safe_load((DEPLOY / "static-pod" / "scheduler.yaml").read_text())
    [file] = [arg.removeprefix("--config=") for arg in ours["args"] if arg.startswith("--config=")]
    for needed in (file, config["clientConnection"]["kubeconfig"]):
        assert mounted[needed] == needed
    address, port = "127.0.0.1", f"--secure-port={PORT}"
    assert spec["hostNetwork"] and f"--bind-address={address}" in ours["args"] and port in ours["args"]
    probes = [probe["httpGet"] for name, probe in ours.items() if name.endswith("Probe")]
    assert [(probe["host"], probe["port"]) for probe in probes] == [(address, PORT)] * 3


def test_static_pod_s_rights_are_those_of_kube_scheduler_s_user() -> None:
    objects = kustomized(DEPLOY / "static-pod")
    kinds = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    assert {obj["kind"] for obj in objects} == kinds
    for binding in (*of_kind(objects, "ClusterRoleBinding"), *of_kind(objects, "RoleBinding")):
        assert [subject["name"] for subject in binding["subjects"]] == ["system:kube-scheduler"]


def test_optional_parts_are_about_the_pods_and_the_service(tmp_path: Path) -> None:
    objects = composed(tmp_path, "network-policy", "service-monitor", "alerts")
    labels = one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    service = one(objects, "Service")
    policy = one(objects, "NetworkPolicy", "policysched")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    [[allowed]] = [rule["ports"] for rule in policy["ingress"]]
    assert allowed["port"] == PORT
    monitor = one(objects, "ServiceMonitor")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["namespaceSelector"]["matchNames"] == [service["metadata"]["namespace"]]
    [endpoint] = monitor["endpoints"]
    assert [port["name"] for port in service["spec"]["ports"]] == [endpoint["port"]]
    _check_verified(objects, endpoint)
    told = yaml.safe_dump(one(objects, "PrometheusRule")["spec"])
    assert set(re.findall(r'job="(\w+)"', told)) == {service["metadata"]["name"]}, "the job is the Service's name"
    [rule] = one(objects, "ClusterRole", "policysched-metrics-reader")["rules"]
    assert rule == {"nonResourceURLs": [endpoint["path"]], "verbs": ["get"]}


def _check_verified(objects: list[Json], endpoint: Json) -> None:
    """Check that Prometheus verifies the certificate that the scheduler serves, and has a token."""
    service, tls = one(objects, "Service")["metadata"], endpoint["tlsConfig"]
    assert "insecureSkipVerify" not in tls
    assert tls["serverName"] == f"{service['name']}.{service['namespace']}.svc"
    pod = one(objects, "Deployment")["spec"]["template"]["spec"]
    [secret] = [volume["secret"]["secretName"] for volume in pod["volumes"] if volume["name"] == "tls"]
    assert secret == tls["ca"]["secret"]["name"]
    [place] = [mount["mountPath"] for mount in container(objects)["volumeMounts"] if mount["name"] == "tls"]
    files = [f"--tls-cert-file={place}/tls.crt", f"--tls-private-key-file={place}/tls.key"]
    assert container(objects)["args"][-2:] == files
    token = one(objects, "Secret", endpoint["authorization"]["credentials"]["name"])
    assert token["type"] == "kubernetes.io/service-account-token"
    account = token["metadata"]["annotations"]["kubernetes.io/service-account.name"]
    binding = one(objects, "ClusterRoleBinding", "policysched-metrics-reader")
    assert [subject["name"] for subject in binding["subjects"]] == [account]


def test_webhook_is_hardened_as_the_scheduler(tmp_path: Path) -> None:
    objects = composed(tmp_path, "webhook", "network-policy")
    names = ("policysched", "policysched-webhook")
    scheduler, webhook = (_hardening(one(objects, "Deployment", name)) for name in names)
    assert scheduler == webhook
    for kind in ("ServiceAccount", "PodDisruptionBudget", "NetworkPolicy"):
        assert {obj["metadata"]["name"] for obj in of_kind(objects, kind)} == set(names)
    assert [obj["automountServiceAccountToken"] for obj in of_kind(objects, "ServiceAccount")] == [False, False]
    [port] = one(objects, "Deployment", "policysched-webhook")["spec"]["template"]["spec"]["containers"][0]["ports"]
    [rule] = one(objects, "NetworkPolicy", "policysched-webhook")["spec"]["ingress"]
    assert [allowed["port"] for allowed in rule["ports"]] == [port["containerPort"]]


def _hardening(deployment: Json) -> Json:
    """Return what protects the pods of a Deployment, without names and amounts."""
    text = yaml.safe_dump(deployment["spec"]["template"]["spec"])
    spec = yaml.safe_load(text.replace(f": {deployment['metadata']['name']}\n", ": NAME\n"))
    [ours] = spec.pop("containers")
    kept = {key: value for key, value in spec.items() if key != "volumes"}
    kept |= {key: ours[key] for key in ours if key.endswith("Probe") or key == "securityContext"}
    kept["limits"] = sorted(ours["resources"]["limits"])
    kept["tmp"] = [volume for volume in spec["volumes"] if volume["name"] == "tmp"]
    return kept


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_users_roles_are_extended_by_rights_on_policies(overlay: str) -> None:
    objects = kustomized(DEPLOY / overlay)
    verbs = {"view": {"get", "list", "watch"}, "edit": {"create", "update", "patch", "delete", "deletecollection"}}
    for name, wanted in verbs.items():
        role = one(objects, "ClusterRole", f"policysched-{name}")
        assert role["metadata"]["labels"][f"rbac.authorization.k8s.io/aggregate-to-{name}"] == "true"
        [rule] = role["rules"]
        assert (rule["resources"], set(rule["verbs"])) == (["schedulingpolicies"], wanted)


def test_flags_of_the_pods_are_flags_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    given = [*container(kustomized(DEPLOY / "beside"))["args"], *static_pod()["spec"]["containers"][0]["args"]]
    assert execute(["run", "--help"]) == 0
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert {arg.partition("=")[0] for arg in given if arg.startswith("--")} <= known


def test_secrets_are_reached_by_name_alone(tmp_path: Path) -> None:
    objects = composed(tmp_path, "webhook")
    rules = [rule for kind in ("Role", "ClusterRole") for role in of_kind(objects, kind) for rule in role["rules"]]
    about = [rule for rule in rules if "secrets" in rule.get("resources", ())]
    names = [one["metadata"]["name"] for one in of_kind(objects, "Secret")]
    assert [(rule["verbs"], rule["resourceNames"]) for rule in about] == [(["get", "update"], names)]
    assert not any("data" in one or "stringData" in one for one in of_kind(objects, "Secret"))
