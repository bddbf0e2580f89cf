from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.cli.conftest import Command, Write

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def _policy(name: str, *requires: str, **spec: Any) -> dict[str, Any]:
    filters = [{"name": f"rule-{number}", "require": one} for number, one in enumerate(requires)]
    return {
        "apiVersion": "policysched.io/v1beta1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": name},
        "spec": {"filters": filters, **spec},
    }


def _pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "a", "image": "a"}]
    metadata = {"name": "web", "labels": {"team": "red"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def _required(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


@pytest.fixture
def translated(command: Command, write: Write) -> Any:
    def run(policies: list[dict[str, Any]], pod: dict[str, Any], *more: str, code: int = 0) -> Any:
        write("nodes.yaml", yaml.dump(NODE))
        write("pod.yaml", yaml.dump(pod))
        write("policies.yaml", yaml.dump_all(policies))
        arguments = ("--cluster", "nodes.yaml", "--pod", "pod.yaml", "--policy", "policies.yaml", *more)
        done = command("translate", *arguments, "-o", "json")
        assert done.code == code, done
        return done.value

    return run


def test_filters_of_all_policies_are_combined_with_the_affinity_of_the_pod(translated: Any) -> None:
    own = {"nodeSelectorTerms": [{"matchExpressions": [_required("disk", "ssd")]}, {}]}
    pod = _pod(affinity={"nodeAffinity": {REQUIRED: own, "preferredDuringSchedulingIgnoredDuringExecution": []}})
    policies = [
        _policy("team", 'node.labels["pool"] == pod.labels["team"]'),
        _policy("zones", 'node.zone in ["a", "b"] or node.name == "n1"'),
    ]
    told = translated(policies, pod, "--exact")
    zones = _required("topology.kubernetes.io/zone", "a", "b")
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    pool, disk = _required("pool", "red"), _required("disk", "ssd")
    assert told["nodeAffinity"] == {
        REQUIRED: {
            "nodeSelectorTerms": [
                {"matchExpressions": [disk, pool, zones]},
                {"matchExpressions": [disk, pool], "matchFields": [name]},
            ]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [],
    }
    assert told["exact"]
    assert [one["result"] for one in told["rules"]] == ["exact", "exact"]


def test_parts_that_affinity_cannot_express_are_named_and_allow_more_nodes(translated: Any) -> None:
    policy = _policy(
        "p",
        'node.labels["pool"] == "red" and node.free.cpu > 2',
        'number(node.labels["generation"]) >= 3',
        "node.ready",
    )
    told = translated([policy], _pod(), "--exact", code=1)
    [term] = told["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "generation", "operator": "Exists"}, _required("pool", "red")]}
    assert [(one["result"], one["detail"]) for one in told["rules"]] == [
        ("partly", "node affinity cannot express node.free.cpu"),
        ("partly", 'node affinity cannot express this comparison of node.labels["generation"]'),
        ("not translated", "node affinity cannot express node.ready"),
    ]
    assert not told["exact"]


def test_filters_that_do_not_apply_are_not_translated(translated: Any) -> None:
    policies = [
        _policy("other", 'node.arch == "arm64"', schedulerNames=["other"]),
        _policy("blue", 'node.arch == "arm64"', appliesTo='pod.labels["team"] == "blue"'),
        _policy("shadow", 'node.arch == "arm64"', mode="Shadow"),
        _policy("night", 'node.arch == "arm64"', appliesTo='clock("22:00", "06:00")'),
    ]
    told = translated(policies, _pod())
    assert told["nodeAffinity"] is None
    assert {one["policy"]: one["result"] for one in told["rules"]} == {
        "other": "does not apply",
        "blue": "does not apply",
        "night": "not translated",
    }
    assert not told["exact"]


def test_filters_that_no_node_can_meet_give_a_term_that_matches_no_node(translated: Any) -> None:
    told = translated([_policy("p", 'node.arch == "arm64"', 'node.arch == "amd64"')], _pod(), "--exact")
    [term] = told["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert [one["operator"] for one in term["matchExpressions"]] == ["Exists", "DoesNotExist"]
    assert len({one["key"] for one in term["matchExpressions"]}) == 1


def test_pod_with_many_terms_of_its_own_is_not_translated(translated: Any) -> None:
    own = [{"matchExpressions": [_required("disk", f"d{number}")]} for number in range(40)]
    pod = _pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": own}}})
    told = translated([_policy("p", 'node.labels["a"] == "x" or node.labels["b"] == "x"')], pod, "--exact", code=1)
    assert told["nodeAffinity"] is None


def test_name_of_a_pod_from_a_template_is_not_known(translated: Any) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": _pod()["spec"]}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    policy = _policy("p", 'node.labels["owner"] == pod.name')
    [of_template] = translated([policy], deployment)["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert of_template == {"matchExpressions": [{"key": "owner", "operator": "Exists"}]}
    [of_pod] = translated([policy], _pod(), "--exact")["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert of_pod == {"matchExpressions": [_required("owner", "web")]}


def test_alternatives_beyond_the_limit_are_left_out(translated: Any) -> None:
    filters = [f'node.labels["a{number}"] == "x" or node.labels["b{number}"] == "x"' for number in range(8)]
    told = translated([_policy("p", *filters)], _pod())
    assert not told["exact"]
    assert 1 <= len(told["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]) <= 64


def test_table_has_the_affinity_as_yaml(command: Command, write: Write) -> None:
    write("nodes.yaml", yaml.dump(NODE))
    write("pod.yaml", yaml.dump(_pod()))
    write("policy.yaml", yaml.dump(_policy("p", 'node.zone == "a"', "node.free.cpu > 1")))
    done = command("translate", "--cluster", "nodes.yaml", "--pod", "pod.yaml", "--policy", "policy.yaml")
    assert done.code == 0
    first, *_ = done.out.splitlines()
    assert first == "pod default/web: the node affinity allows all nodes that the policies allow, and others"
    written = done.out[done.out.index("affinity:\n") : done.out.index("\n\nFilters")]
    [term] = yaml.safe_load(written)["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [_required("topology.kubernetes.io/zone", "a")]}
    assert "node affinity cannot express node.free.cpu" in done.out


def test_policy_with_errors_is_reported(translated: Any) -> None:
    told = translated([_policy("bad", "node.nam == 1"), _policy("good", 'node.zone == "a"')], _pod(), code=1)
    assert told["nodeAffinity"] is not None
    assert "bad" in told["notApplied"]


@pytest.fixture
def admitted(command: Command, write: Write) -> Any:
    def run(policies: list[dict[str, Any]], *more: str, code: int = 0) -> tuple[list[dict[str, Any]], str]:
        write("nodes.yaml", yaml.dump(NODE))
        write("policies.yaml", yaml.dump_all(policies))
        arguments = ("--admission-policies", "--cluster", "nodes.yaml", "--policy", "policies.yaml", *more)
        done = command("translate", *arguments)
        assert done.code == code, done
        return yaml.safe_load(done.out)["items"], done.problem

    return run


def test_each_filter_has_an_admission_policy_that_names_what_it_does_not_express(admitted: Any) -> None:
    selectors = {"podSelector": {"matchLabels": {"team": "red"}}, "namespaceSelector": {"matchLabels": {"stage": "a"}}}
    policy = _policy("p", 'node.zone == "a"', "node.ready", 'node.arch == "arm64" and node.ready', **selectors)
    items, said = admitted([policy], "--exact", code=1)
    assert [(one["kind"], one["metadata"]["name"]) for one in items] == [
        (kind, f"p.rule-{rule}.policysched.io")
        for rule in (0, 2)
        for kind in ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    ]
    constraints = items[0]["spec"]["matchConstraints"]
    assert constraints["objectSelector"] == {"matchLabels": {"team": "red"}}
    assert constraints["namespaceSelector"] == {"matchLabels": {"stage": "a"}}
    assert "annotations" not in items[0]["metadata"]
    unexpressed = "node affinity cannot express node.ready"
    assert items[2]["metadata"]["annotations"] == {"policysched.io/not-expressed": unexpressed}
    assert f"note: policy p/rule-1 is translated to nothing: {unexpressed}" in said
    assert f"note: policy p/rule-2 is translated in part: {unexpressed}" in said


def test_admission_policies_are_for_the_schedulers_that_use_a_policy(admitted: Any, write: Write) -> None:
    policies = [
        _policy("all", 'node.zone == "a"'),
        _policy("own", 'node.zone == "a"', schedulerNames=["b", "c"]),
        _policy("shadow", 'node.zone == "a"', mode="Shadow"),
        _policy("night", 'node.zone == "a"', appliesTo='clock("22:00", "06:00")'),
    ]

    def names(*more: str) -> dict[str, str]:
        items, said = admitted(policies, *more)
        assert "policy night/rule-0 is translated to nothing: CEL cannot express all of appliesTo" in said
        made = (one for one in items if one["kind"] == "MutatingAdmissionPolicy")
        return {one["metadata"]["name"]: one["spec"]["matchConditions"][0]["expression"] for one in made}

    of = "object.spec.schedulerName in "
    expected = {"all.rule-0.policysched.io": f'{of}["policysched"]', "own.rule-0.policysched.io": f'{of}["b", "c"]'}
    assert names() == expected
    profiles = [{"schedulerName": "a"}, {"schedulerName": "b"}]
    version = "kubescheduler.config.k8s.io/v1"
    config = {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "profiles": profiles}
    write("config.yaml", yaml.dump(config))
    with_config = {"all.rule-0.policysched.io": f'{of}["a", "b"]', "own.rule-0.policysched.io": f'{of}["b"]'}
    assert names("--config", "config.yaml") == with_config


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "set --pod, or --admission-policies"),
        (("--admission-policies", "--pod", "pod.yaml"), "--pod and --admission-policies cannot be combined"),
        (("--admission-policies", "-o", "markdown"), "admission policies are printed as yaml or json"),
    ],
)
def test_flags_that_exclude_each_other_are_an_error(command: Command, arguments: tuple[str, ...], said: str) -> None:
    done = command("translate", *arguments)
    assert (done.code, said in done.problem) == (2, True), done
