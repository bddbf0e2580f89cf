"""`--kube-version`: commands follow the Kubernetes minor that it names; `auto` is the minor of the live server."""

from __future__ import annotations

import json

import pytest
import yaml

from policysched.model.release import DEFAULT, RELEASES
from tests.app.configuration.test_reading import HEAD
from tests.app.dry_runs import node, pod
from tests.app.plan.test_plan import ours
from tests.app.why.test_why import bound
from tests.cli.conftest import Command, Write

KNOWN = "auto, 1.36, 1.37, 1.38"
NARROWING = {"schedulerName": "policysched", "plugins": {"preFilter": {"enabled": [{"name": "NodeName"}]}}}
"""A profile that only the kube-scheduler of 1.37 and later accepts, because NodeName acts at PreFilter there."""
DRY_RUN = ("dry-run", "--cluster", "cluster.yaml", "--pod", "pod.yaml", "-o", "json")


@pytest.fixture
def files(write: Write) -> None:
    write("cluster.yaml", yaml.dump_all(ours([node("n1"), node("n2"), bound("a", "n1", 1)])))
    write("pod.yaml", yaml.dump(pod("p")))
    write("narrowing.yaml", yaml.dump({**HEAD, "profiles": [NARROWING]}))
    write("policy-tests.yaml", "cluster: {nodes: [{name: n1}]}\ntests: [{given: a pod, expect: {best: [n1]}}]\n")


CONFIGURED = (
    ("plan", "--cluster", "cluster.yaml", "--config", "narrowing.yaml"),
    ("why", "a", "--cluster", "cluster.yaml", "--config", "narrowing.yaml"),
    (*DRY_RUN, "--config", "narrowing.yaml"),
    ("config", "view", "--config", "narrowing.yaml"),
    ("config", "check", "narrowing.yaml"),
)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("minor", ["1.34", "1.37.9", "latest", "", "v1.37"])
@pytest.mark.parametrize(
    "ask", [*CONFIGURED, DRY_RUN, ("plugins",), ("test", "."), ("sandbox",)], ids=lambda ask: " ".join(ask[:2])
)
def test_other_minors_are_refused_with_the_known_ones(command: Command, ask: tuple[str, ...], minor: str) -> None:
    done = command(*ask, f"--kube-version={minor}")
    assert (done.code, done.out) == (2, "")
    assert done.problem == f'error: Kubernetes version "{minor}" is not one of {KNOWN}\n'


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("ask", CONFIGURED, ids=lambda ask: " ".join(ask[:2]))
def test_configuration_is_read_as_that_minor_reads_it(command: Command, ask: tuple[str, ...]) -> None:
    refused = command(*ask, "--kube-version", "1.36")
    assert refused.code == (1 if ask[1] == "check" else 2)
    assert "preFilter" in refused.problem + refused.out
    assert command(*ask, "--kube-version", "1.37").code == 0


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("minor", [*RELEASES, "auto"])
def test_record_of_a_decision_names_the_minor(command: Command, minor: str) -> None:
    done = command(*DRY_RUN, "--kube-version", minor)
    assert done.value["reference"] == (DEFAULT.minor if minor == "auto" else minor)


def test_plugins_act_at_the_points_of_the_minor(command: Command) -> None:
    def points(minor: str) -> list[str]:
        rows = command("plugins", "-o", "json", "--kube-version", minor).value["items"]
        return next(row["points"] for row in rows if row["name"] == "NodeName")

    assert (points("1.36"), points("1.37")) == (["filter"], ["preFilter", "filter"])


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("version", "minor", "note"),
    [
        ("v1.37.4-gke.1", "1.37", ""),
        ("v1.36.0", "1.36", ""),
        ("v1.35.9", "1.36", "note: the API server has version v1.35.9; "),
        ("v1.39.0", "1.38", "note: the API server has version v1.39.0; "),
        ("", DEFAULT.minor, "note: the API server reports no version; "),
    ],
)
def test_live_cluster_is_followed_by_its_minor(
    command: Command, monkeypatch: pytest.MonkeyPatch, version: str, minor: str, note: str
) -> None:
    """The sandbox runs in the loop of each command, so reading is all that is faked here."""

    async def read_cluster(*_: object, version: object = None, **more: object) -> list[object]:
        if callable(version):
            version(stated)
        return [node("n1")]

    stated = version
    monkeypatch.setattr("policysched.app.dry_run.live_cluster.read_cluster", read_cluster)
    ask = ("dry-run", "--cluster", "live", "--pod", "pod.yaml", "-o", "json")
    done = command(*ask)
    assert (done.value["reference"], done.problem.startswith(note or "\0")) == (minor, bool(note))
    stated_minor = command(*ask, "--kube-version", "1.36")
    assert (stated_minor.value["reference"], stated_minor.problem) == ("1.36", "")


def test_version_lists_the_releases(command: Command) -> None:
    told = command("version", "-o", "json").value
    assert [one["minor"] for one in told["references"]] == [*RELEASES]
    assert [one["minor"] for one in told["references"] if one["default"]] == [DEFAULT.minor]
    assert json.dumps(told["references"]).count('"preview": true') == sum(one.is_preview for one in RELEASES.values())
    assert command("version", "-o", "yaml").out.startswith(
        "apiVersion: output.policysched.io/v1alpha1\nkind: Version\n"
    )
