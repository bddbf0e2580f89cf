"""Commands accept names as `kubectl get -o name` prints them, and name the object that a wrong name means."""

from __future__ import annotations

import pytest

from .conftest import Command

CLUSTER = ("--cluster", "l1-names.yaml")
NODE = "ip-10-0-2-9.eu-central-1.compute.internal"
PODS = "pods of {} are default/web-dcfd74c4f-2xkqz, default/web-dcfd74c4f-9s4lw"


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (("why", "web"), PODS.format("web")),
        (("why", "web-dcfd74c4f"), PODS.format("web-dcfd74c4f")),
        (("why", "data/db"), "pods of db are data/db-0"),
        (("why", "web-dcfd74c4f-9s4l"), "did you mean `default/web-dcfd74c4f-9s4lw`?"),
        (("why", "x"), "pod default/x is not in the cluster, which has 4 pods"),
        (("why", "mm", "ip-10-0-2-9"), f"did you mean `{NODE}`?"),
        (("plan", "--without-node", "ip-10-0-2-9"), f"did you mean `{NODE}`?"),
        (("plan", "--without-node", "node/ip-10-0-2-9"), f"did you mean `{NODE}`?"),
        (("plan", "--without-policy", "only-redy"), "did you mean `only-ready`?"),
        (("plan", "--replicas", "wep=3"), "did you mean `default/web`?"),
        (("plan", "--replicas", "db=3"), "did you mean `data/db`?"),
        (("plan", "--replicas", "data/web=3"), "did you mean `default/web`?"),
        (("plan", "--replicas", "default-x=3"), "the cluster has no pod of this workload"),
        (("why", "db"), "pods of db are data/db-0"),
        (("why", "db-00"), "did you mean `data/db-0`?"),
        (("why", "data/web"), PODS.format("web")),
    ],
)
def test_the_object_that_a_wrong_name_means_is_named(command: Command, ask: tuple[str, ...], problem: str) -> None:
    done = command(*ask, *CLUSTER)
    assert (done.code, done.out) == (2, "")
    assert done.problem.endswith(f"{problem}\n")


def test_names_may_have_their_kind(command: Command) -> None:
    for kind in ("", "node/"):
        assert command("plan", "--without-node", kind + NODE, *CLUSTER).code in {0, 1}
        assert command("why", "mm", kind + NODE, *CLUSTER).code == 0
    for kind in ("", "schedulingpolicy.policysched.io/"):
        assert command("plan", "--without-policy", f"{kind}only-ready", *CLUSTER).code == 1
