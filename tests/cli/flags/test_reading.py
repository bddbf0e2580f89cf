"""How flags are written, and what is said of those that cannot be used."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import yaml

from policysched.cli import execute
from policysched.cli.flags.declaring import FlagCommand, _as_click
from policysched.cli.flags.feature_gates import apply_gates
from policysched.cli.flags.sections import RunCommand, RunFlags, shown_flags
from policysched.cli.flags.values import ANY_ADDRESS
from tests.cli.conftest import Command, Write

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["--leader-elect"], ["--leader-elect=true"]),
        (["--leader_elect=false"], ["--leader-elect=false"]),
        (["--kube_api_qps", "5"], ["--kube-api-qps", "5"]),
        (["-v=2"], ["--v=2"]),
        (["-v", "2"], ["-v", "2"]),
        (["--version"], ["--version=true"]),
        (["--version=raw"], ["--version=raw"]),
        (["--feature-gates=A_b=true"], ["--feature-gates=A_b=true"]),
        (["--profiling", "--", "--profiling"], ["--profiling=true", "--", "--profiling"]),
    ],
)
def test_flags_are_written_as_pflag_takes_them(written: list[str], read: list[str]) -> None:
    assert [*_as_click(written, RunCommand.bare)] == read
    assert issubclass(RunCommand, FlagCommand)


def test_values_are_read_by_their_forms() -> None:
    flags = RunFlags.read(
        {
            "leader_elect": "F",
            "leader_elect_lease_duration": "1m30s",
            "secure_port": "0",
            "authorization_always_allow_paths": ["/a,/b", "/c"],
            "allow_metric_labels": ["m,l=v1,v2", '"m,a=1","m,b=2,3"'],
            "vmodule": ["queue*=4,binding=2"],
            "tls_sni_cert_key": ["a.crt,a.key:*.example.com,b.example.com", "b.crt,b.key"],
            "kube_api_qps": "-1",
            "bind_address": "",
            "config": "c.yaml",
        }
    )
    assert flags.election.leader_elect is False
    assert flags.election.leader_elect_lease_duration == "1m30s"
    assert flags.serving.secure_port == 0
    assert flags.authorization.authorization_always_allow_paths == ("/a", "/b", "/c")
    assert flags.metrics.allow_metric_labels == (("m,l", "v1,v2"), ("m,a", "1"), ("m,b", "2,3"))
    assert flags.logs.vmodule == (("queue*", 4), ("binding", 2))
    names = ("*.example.com", "b.example.com")
    assert flags.serving.tls_sni_cert_key == (
        (Path("a.crt"), Path("a.key"), names),
        (Path("b.crt"), Path("b.key"), ()),
    )
    assert flags.deprecated.kube_api_qps == -1
    assert flags.serving.bind_address == ANY_ADDRESS
    assert flags.misc.config == Path("c.yaml")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--secure-port=70000"], '--secure-port "70000" is not between 0 and 65535'),
        (["--secure-port=https"], '--secure-port "https" is not a whole number'),
        (["--bind-address=here"], '--bind-address "here" is not an IP address'),
        (["--kube-api-qps=fast"], '--kube-api-qps "fast" is not a number'),
        (["--kube-api-qps=inf"], '--kube-api-qps "inf" is not a 32-bit number'),
        (["--kube-api-burst=-1"], '--kube-api-burst "-1" is not between 0 and 2147483647'),
        (["--profiling=maybe"], '--profiling "maybe" is not true or false'),
        (["--profiling", "false"], "got unexpected extra argument(s) (false)"),
        (
            ["--leader-elect-lease-duration=1"],
            '--leader-elect-lease-duration "1" is not a duration; write it as 15s or 1m30s',
        ),
        (["--leader-elect-lease-duration=0s"], '--leader-elect-lease-duration "0s" is not greater than 0'),
        (
            ["--tls-min-version=1.3"],
            '--tls-min-version "1.3" is not one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13',
        ),
        (["--tls-sni-cert-key=a.crt"], '--tls-sni-cert-key "a.crt" is not CERTIFICATE,KEY[:NAME,...]'),
        (["--tls-curve-preferences=x"], '--tls-curve-preferences "x" is not a whole number'),
        (['--tls-cipher-suites="a'], '--tls-cipher-suites ""a" is not a comma-separated list: unexpected end of data'),
        (["--allow-metric-labels=m"], '--allow-metric-labels "m" is not a list of KEY=VALUE'),
        (["--vmodule=queue"], '--vmodule "queue" is not a list of PATTERN=LEVEL'),
        (["-v=x"], '--v "x" is not a whole number'),
        (["--v=-1"], '--v "-1" is not between 0 and 2147483647'),
        (["--logging-format=xml"], '--logging-format "xml" is not one of text, json'),
        (
            ["--log-json-info-buffer-size=much"],
            '--log-json-info-buffer-size "much" is not a size; write it as 512, 1K or 2Ki',
        ),
        (
            ["--show-hidden-metrics-for-version=1.2"],
            '--show-hidden-metrics-for-version "1.2" is not one of 1.35, 1.36, 1.37',
        ),
        (["--version=v9"], '--version "v9" is not one of true, false, raw'),
        (["--feature-gates=Nope=true"], "--feature-gates: unrecognized feature gate: Nope"),
        (["--feature-gates=WatchList"], "--feature-gates: missing bool value for WatchList"),
        (["--feature-gates=WatchList=maybe"], '--feature-gates: WatchList "maybe" is not true or false'),
        (["--feature-gates=x:WatchList=true"], "--feature-gates: component not registered: x"),
        (
            ["--feature-gates=NodeDeclaredFeatures=false"],
            "--feature-gates: cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true",
        ),
        (
            ["--kube-version=1.36", "--feature-gates=WatchList=true,StorageCapacityScoring=true"],
            "--feature-gates: StorageCapacityScoring=true is not supported: the Kubernetes minor that is followed "
            "decides; leave it false",
        ),
        (
            ["--kube-version=1.36", "--feature-gates=kube:NodeDeclaredFeatures=false"],
            "--feature-gates: NodeDeclaredFeatures=false is not supported: disable the plugin NodeDeclaredFeatures in "
            "the profiles instead; leave it true",
        ),
        (
            ["--feature-gates=AllBeta=false"],
            "--feature-gates: AllBeta (InPlacePodLevelResourcesVerticalScaling)=false is not supported: pod-level "
            "resources of resized pods always apply; leave it true",
        ),
        (
            ["--emulated-version=1.35"],
            '--emulated-version "1.35" is not supported: this scheduler follows kube-scheduler 1.37; set 1.37',
        ),
        (["--emulated-version=a=1.36"], "--emulated-version: component not registered: a"),
        (
            ["--min-compatibility-version=1.2"],
            '--min-compatibility-version "1.2" is not supported: this scheduler follows kube-scheduler 1.37; '
            "set 1.34 to 1.37",
        ),
        (
            ["--write-config-to=no/such/folder"],
            '--write-config-to: cannot write "no/such/folder": No such file or directory',
        ),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_what_cannot_be_used_is_one_line(command: Command, arguments: list[str], said: str) -> None:
    done = command("run", *arguments)
    assert (done.code, done.problem) == (2, f"error: {said}\n")


@pytest.mark.parametrize(
    "given",
    [
        ["WatchList=false", "kube:DynamicResourceAllocation=true"],
        ["AllAlpha=false"],
        [
            "AllBeta=true",
            "CoordinatedLeaderElection=false",
            "DRAWorkloadResourceClaims=false",
            "DRAFractionalCapacityRange=false",
        ],
        [
            "AllBeta=false",
            *(
                f"{one}=true"
                for one in (
                    "InPlacePodLevelResourcesVerticalScaling",
                    "PodLevelResources",
                    "MatchLabelKeysInPodTopologySpread",
                    "NodeDeclaredFeatures",
                    "SchedulerPopFromBackoffQ",
                    "StorageCapacityScoring",
                    "VolumeLimitScaling",
                )
            ),
        ],
    ],
    ids=str,
)
def test_gates_that_ask_for_what_is_done_anyway_are_accepted(given: list[str]) -> None:
    apply_gates(given, ["1.37", "kube=v1.37"], ["1.34"])


@pytest.mark.parametrize("value", ["", "=true", "=raw"])
def test_the_version_is_printed(command: Command, value: str) -> None:
    done = command("run", f"--version{value}", "--config=no-such-file")
    assert (done.code, done.out.split()[0], done.problem) == (0, "policysched", "")


def test_every_flag_has_a_value_to_show() -> None:
    shown = dict(shown_flags({"v": "3", "feature_gates": ["A=true", "B=false"]}))
    assert [*shown] == sorted(shown)
    assert (shown["v"], shown["feature-gates"], shown["leader-elect"]) == ("3", "[A=true,B=false]", "true")


def written(command: Command, tmp_path: Path, *arguments: str) -> dict[str, object]:
    """What is written as the completed configuration."""
    done = command("run", "--write-config-to=out.yaml", *arguments)
    assert (done.code, done.out) == (0, "")
    return dict(yaml.safe_load((tmp_path / "out.yaml").read_text("utf-8")))


def test_flags_count_where_there_is_no_file(command: Command, tmp_path: Path) -> None:
    flags = [
        "--kube-api-qps=20.5",
        "--kube-api-burst=30",
        "--kubeconfig=k",
        "--profiling=false",
        "--leader-elect=false",
    ]
    found = written(command, tmp_path, *flags, "--scheduler-name=mine")
    assert found["clientConnection"] == {
        "kubeconfig": "k",
        "acceptContentTypes": "",
        "contentType": "application/vnd.kubernetes.protobuf",
        "qps": 20.5,
        "burst": 30,
    }
    assert (found["enableProfiling"], found["enableContentionProfiling"]) == (False, False)
    assert found["leaderElection"]["leaderElect"] is False  # type: ignore[index]
    assert [one["schedulerName"] for one in found["profiles"]] == ["mine"]  # type: ignore[attr-defined]


def test_without_flags_nothing_bounds_requests(command: Command, tmp_path: Path) -> None:
    assert written(command, tmp_path)["clientConnection"]["qps"] == -1  # type: ignore[index]


def test_with_a_file_only_flags_of_leader_election_count(command: Command, write: Write, tmp_path: Path) -> None:
    write(
        "c.yaml",
        CONFIG + "clientConnection: {qps: 7, burst: 8, kubeconfig: theirs}\nleaderElection: {leaseDuration: 30s}\n",
    )
    flags = ["--kube-api-qps=20", "--kube-api-burst=30", "--kubeconfig=k", "--profiling=false"]
    found = written(command, tmp_path, "--config=c.yaml", *flags, "--leader-elect-renew-deadline=20s")
    assert found["clientConnection"] == {
        "kubeconfig": "theirs",
        "acceptContentTypes": "",
        "contentType": "application/vnd.kubernetes.protobuf",
        "qps": 7,
        "burst": 8,
    }
    assert found["enableProfiling"] is True
    election = found["leaderElection"]
    assert (election["leaseDuration"], election["renewDeadline"]) == ("30s", "20s")  # type: ignore[index]


def test_what_was_written_reads_as_the_same(command: Command, tmp_path: Path) -> None:
    first = written(command, tmp_path, "--leader-elect-retry-period=3s")
    (tmp_path / "out.yaml").rename(tmp_path / "c.yaml")
    assert written(command, tmp_path, "--config=c.yaml") == first


@pytest.mark.parametrize("connection", ["", "clientConnection: {qps: 9}\n"])
def test_a_kubeconfig_that_only_an_ignored_flag_names_is_an_error(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch, connection: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", write("other-cluster", ""))
    write("c.yaml", CONFIG + connection)
    done = command("run", "--config=c.yaml", "--kubeconfig=staging", "--secure-port=0")
    assert done.code == 2
    assert done.problem.splitlines()[-1] == (
        "error: --kubeconfig is ignored with --config, and c.yaml names no kubeconfig; "
        "set clientConnection.kubeconfig in the file or remove --kubeconfig"
    )


def test_flags_that_count_for_nothing_are_told(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    write("c.yaml", CONFIG + "clientConnection: {kubeconfig: no-such-file}\n")
    ignored = ["--kube-api-qps=20", "--kube-api-burst=30", "--kubeconfig=k", "--profiling=false"]
    with caplog.at_level(logging.WARNING, "policysched"):
        assert execute(["run", "--config=c.yaml", *ignored, "--disable-http2-serving", "--secure-port=0"]) == 2
    assert [one.getMessage() for one in caplog.records if "lease" not in one.getMessage()] == [
        "--disable-http2-serving has no effect: HTTP/2 is not served",
        "--profiling has no effect: there is no /debug/pprof",
        "--kubeconfig is ignored with --config; set clientConnection.kubeconfig in the file",
        "--kube-api-burst is ignored with --config; set clientConnection.burst in the file",
        "--kube-api-qps is ignored with --config; set clientConnection.qps in the file",
        "--profiling is ignored with --config; set enableProfiling in the file",
    ]
