"""A saved cluster: read by what scheduling reads, with the same decisions and messages as any file."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from policysched.app.admission import Admission
from policysched.app.dry_run.saved_pods import SavedPods
from policysched.app.files.saved_clusters import SavedObject, load_cluster
from policysched.errors import UsageError
from policysched.model.decode import ObjectError, decode_node, decode_pod
from policysched.model.defaults import PriorityClasses
from policysched.model.kinds import fill
from policysched.reading.loading import load
from policysched.reading.yaml_nodes import read_yaml
from policysched.reading.yaml_values import NotPlainError, read_events
from policysched.state.cluster import Cluster
from tests.laws.examples import examples

Json = dict[str, Any]
HEAD = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}}
NODE = {
    "apiVersion": "v1", "kind": "Node",
    "metadata": {"name": "n1", "labels": {"a": "ä"}, "managedFields": [{"manager": "x"}]},
    "status": {"capacity": {"cpu": "4"}, "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}},
}  # fmt: skip
POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1", "creationTimestamp": None},
    "spec": {"nodeName": "n1", "containers": [{"name": "c", "env": [{"name": "X"}], "resources": {}}]},
}  # fmt: skip
POLICY = {
    "apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": {"name": "p"},
    "spec": {"filters": [{"name": "f", "require": "node.zone = 5"}]},
}  # fmt: skip


def write(folder: Path, value: Any, name: str = "c.json", **how: Any) -> str:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps({**HEAD, "items": value}, **how), "utf-8")
    return str(path)


def filled(raw: Any) -> Any:
    return fill(raw, PriorityClasses())


@pytest.mark.parametrize("how", [{"indent": 4}, {}, {"indent": 4, "ensure_ascii": False}], ids=str)
def test_objects_and_places_are_those_of_any_file(tmp_path: Path, how: dict[str, Any]) -> None:
    name = write(tmp_path, [NODE, POD, NODE, POLICY], **how)
    fast, slow = load_cluster([name]), load([name])
    assert [one.object["kind"] for one in fast] == ["Node", "Pod", "Node", "SchedulingPolicy"]
    assert fast[3].object == slow[3].object
    for one, other in zip(fast, slow, strict=True):
        assert one.where == other.where
        assert one.place("metadata.name") == other.place("metadata.name")
    assert fast[3].place("spec.filters[0].require", 1, 11) == slow[3].place("spec.filters[0].require", 1, 11)


@pytest.mark.parametrize("how", [",\n\t", ", "], ids=["lines", "line"])
@pytest.mark.parametrize(
    ("written", "twice", "key"),
    [
        ('"uid": 1', '"uid": 1, "uid": 1', "uid"),
        ('"manager": "x"', '"manager": "x", "f": {"a": "\\u003c", "a" :1}', "a"),
        ('"Port": 10250', '"Port": 10250, "Port": 10250', "Port"),
        ('"nodeName": "n1"', '"nodeName": "n1", "nodeName": "n2"', "nodeName"),
        ('"apiVersion": "v1", "kind": "List"', '"kind": "List", "apiVersion": "v1", "kind": "List"', "kind"),
        ('"resources": {}}]}}]', '"resources": {}}]}}], "items": []', "items"),
        ('"metadata": {"resourceVersion": ""}', '"metadata": {"a": 1, "a": 2}', "a"),
    ],
)
def test_keys_that_are_there_twice_are_refused_at_their_place(
    tmp_path: Path, how: str, written: str, twice: str, key: str
) -> None:
    node = {**NODE, "metadata": {"name": "n1", "uid": 1, "managedFields": [{"manager": "x"}]}}
    text = json.dumps({**HEAD, "items": [NODE, node, POD]}).replace(written, twice, 1)
    at = text.index(twice) + twice.rindex(f'"{key}"')
    before = text[:at].replace(", ", how)
    with pytest.raises(UsageError) as refused:
        load_cluster([write(tmp_path, before + text[at:])])
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert str(refused.value) == f'{tmp_path / "c.json"}:{line}:{column}: duplicate key "{key}"'


def test_what_nobody_reads_is_left_out(tmp_path: Path) -> None:
    node, pod = (one.object for one in load_cluster([write(tmp_path, [NODE, POD])]))
    assert "managedFields" not in node["metadata"]
    assert "daemonEndpoints" not in node["status"]
    assert "env" not in pod["spec"]["containers"][0]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({**HEAD, "items": [NODE, {"kind": "List", "items": [POD]}]}),
        json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n"}}]}),
        json.dumps(NODE),
        json.dumps(NODE) + "\n" + json.dumps(POD),
        json.dumps({**HEAD, "items": [{**POD, "spec": {"containers": None}}]}),
        json.dumps({**HEAD, "items": [{"kind": "ConfigMap", "metadata": {"name": "c"}}]}),
        "\ufeff" + json.dumps(NODE),
        json.dumps({"metadata": {"x": NODE}, **HEAD, "items": [NODE, POD, NODE]}),
        "kind: Node\nmetadata: {name: n}\n",
    ],
)
def test_other_files_are_read_too(tmp_path: Path, text: str) -> None:
    name = write(tmp_path, text)
    kinds = [(one.object.get("apiVersion"), one.object["kind"], one.where) for one in load_cluster([name])]
    assert kinds == [(one.object.get("apiVersion"), one.object["kind"], one.where) for one in load([name])]


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "List", "items": [{"kind": "Node"}, 5]}',
        '{"kind": "List", "items": [{"metadata": {}}]}',
        '{"kind": "List", "items": [{"kind": "Node",}]}',
        '{"kind": "List", "items": [{"kind": "SchedulingPolicy", "kind": "SchedulingPolicy"}]}',
        '{"kind": "List", "items": [{"kind": "SchedulingPolicy", "a": "\\ud800"}]}',
        '{"kind": "List", "items": []}',
        '{"kind": 5, "items": []}',
        "[" * 100_000,
        '{"kind": "List", "items": [' + "[" * 100_000,
        "",
    ],
)
def test_a_broken_file_is_refused_as_any_other(tmp_path: Path, text: str) -> None:
    name = write(tmp_path, text)
    with pytest.raises(UsageError) as fast:
        load_cluster([name])
    with pytest.raises(UsageError) as slow:
        load([name])
    assert str(fast.value) == str(slow.value)


def test_a_saved_object_is_read_as_a_mapping(tmp_path: Path) -> None:
    saved = load_cluster([write(tmp_path, [POD])])[0].object
    assert dict(saved) == {key: saved[key] for key in saved} == dict(saved.items())
    assert (len(saved), saved.get("nothing"), "status" in saved) == (4, None, False)


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_the_text_of_a_file_is_in_memory_once_and_no_longer_than_it_is_read(tmp_path: Path, suffix: str) -> None:
    pod = {**POD, "metadata": {"name": "p1", "unread": ["x" * 50] * 200}}
    text = json.dumps({**HEAD, "items": [pod] * 500}) if suffix == "json" else yaml_of([pod] * 500)
    name = write(tmp_path, text, f"c.{suffix}")
    load_cluster([name])
    tracemalloc.start()
    try:
        documents = load_cluster([name])
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = len(text)
    copies = 1 if suffix == "json" else 2
    assert (len(documents), documents[7].object["metadata"]["name"]) == (500, "p1")
    assert most < (copies + 0.5) * size
    assert kept < (copies - 0.5) * size
    assert documents[7].place("metadata.name") == load([name])[7].place("metadata.name")


def yaml_of(items: list[Any]) -> str:
    item = yaml.safe_dump(items[:1], default_flow_style=False)
    return "apiVersion: v1\nitems:\n" + item * len(items) + "kind: List\n"


def test_a_file_that_is_another_one_by_now_has_no_places(tmp_path: Path) -> None:
    name = write(tmp_path, [NODE, POD])
    documents = load_cluster([name])
    write(tmp_path, [NODE, NODE, POD])
    with pytest.raises(UsageError, match=r"c\.json: file changed while it was read"):
        documents[1].place("metadata.name")


def test_what_cannot_be_read_twice_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = write(tmp_path, [NODE, POD])
    with Path(name).open("rb") as file:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=file))
        documents = load_cluster(["-"])
    assert documents[1].place("metadata.name") == load([name])[1].place("metadata.name")


def test_a_malformed_object_is_said_at_its_place(tmp_path: Path) -> None:
    bad = {**POD, "spec": {"containers": [{"name": 5}]}}
    document = load_cluster([write(tmp_path, [NODE, NODE, bad], indent=4)])[2]
    with pytest.raises(ObjectError) as error:
        filled(document.object)
    slow = load([str(tmp_path / "c.json")])[2]
    assert str(document.refusal(error.value.field, error.value)) == str(slow.refusal(error.value.field, error.value))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3) | st.sampled_from(["100m", "1Gi"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["cpu", "name", "x"]), inner, max_size=2)
    ),
    max_leaves=5,
)
FIELDS = (
    "nodeName", "schedulerName", "priority", "nodeSelector", "affinity", "tolerations", "containers", "overhead",
    "initContainers", "resources", "topologySpreadConstraints", "volumes", "hostNetwork", "unknown",
)  # fmt: skip


@examples(300)
@given(
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4),
    st.dictionaries(st.sampled_from(["labels", "x"]), VALUES),
)
def test_pods_mean_the_same(tmp_path_factory: pytest.TempPathFactory, spec: Json, metadata: Json) -> None:
    """What is left out changes nothing that scheduling reads, nor what is said of a malformed pod."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "name": "p"}, "spec": spec}
    name = write(tmp_path_factory.getbasetemp(), [pod])
    [fast], [slow] = load_cluster([name]), load([name])
    assert meaning_of(fast.object) == meaning_of(slow.object)


YAML = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    annotations: {a: "x", url: 'http://a?b'}
    name: n1
    managedFields: [{manager: x}]
  status:
    allocatable: {cpu: 4, memory: 0x10, pods: "110"}
- apiVersion: v1
  kind: Pod
  metadata:
    creationTimestamp: null
    name: p1
    annotations:
      text: |
        two
        lines
      url: http://a?b
      day: "2026-01-01"
  spec: {containers: [], hostNetwork: yes, priority: 010}
- kind: ConfigMap
  metadata: {name: 22:00}
- apiVersion: policysched.io/v1beta1
  kind: SchedulingPolicy
  metadata: {name: p}
  spec:
    filters:
    - {name: f, require: node.zone == "a"}
kind: List
---
---
kind: Node
metadata: {name: n2}
"""


def test_yaml_gives_the_objects_and_places_of_any_file(tmp_path: Path) -> None:
    name = write(tmp_path, YAML, "c.yaml")
    fast, slow = load_cluster([name]), load([name])
    assert [one.object["kind"] for one in fast] == ["Node", "Pod", "ConfigMap", "SchedulingPolicy", "Node"]
    assert isinstance(fast[0].object, SavedObject)
    assert "managedFields" not in fast[0].object["metadata"]
    for one, other in zip(fast, slow, strict=True):
        assert one.where == other.where
        assert one.place("metadata.name") == other.place("metadata.name")
        assert meaning_of(one.object) == meaning_of(other.object)


@pytest.mark.parametrize(
    "text",
    [
        "kind: Node\nkind: Node\n",
        "a: &a {kind: Node}\nb: *a\n",
        "kind: List\nitems: [5]\n",
        "kind: List\nitems:\n- {metadata: {}}\n",
        "kind: !x Node\n",
        "kind: Node\n\tx: 1\n",
        "kind: Node\nspec: {a: b?c}\n",
        "kind: Node\nspec: {a?: b}\n",
        "? [a]\n: b\n",
        "kind: Node\nx: " + "[" * 300 + "]" * 300,
        "kind: List\nitems: []\n",
        "text",
        "---\n",
        "<<: {kind: 5}\n",
        "kind: Node\nx: 0b_\n",
    ],
)
def test_broken_yaml_is_refused_as_any_other(tmp_path: Path, text: str) -> None:
    name = write(tmp_path, text, "c.yaml")
    with pytest.raises(UsageError) as slow:
        load([name])
    with pytest.raises(UsageError) as fast:
        load_cluster([name])
    assert str(fast.value) == str(slow.value)


SCALARS = st.sampled_from(["yes", "no", "~", "", "null", "1", "010", "0o7", "1e3", "1_000", "0x1f", ".5", "-", "a",
                           "22:00", "2026-01-01", "<", "+1", "-1.5e-3", "n", "On", "1.", "=", "'1'"])  # fmt: skip


@examples(200)
@given(st.recursive(SCALARS, lambda one: st.lists(one, max_size=3).map(lambda x: f"[{', '.join(x)}]") | st.dictionaries(
    st.sampled_from(["a", "1", "yes", "'b'"]), one, max_size=3).map(
        lambda x: "{" + ", ".join(f"{key}: {value}" for key, value in x.items()) + "}"), max_leaves=6))  # fmt: skip
def test_values_are_those_of_the_reader_with_places(text: str) -> None:
    """Whatever the fast reader takes it reads as the other one does."""
    for written in (text, f"a: {text}\nb:\n- {text}\n"):
        try:
            fast = list(read_events(written, lambda item: item))
        except NotPlainError:
            continue
        assert fast == [value for value, _ in read_yaml(written, "f")]


WRITTEN = st.sampled_from([
    *YAML.splitlines(), "", "# comment", "---", "- kind: Node", "kind: Pod", "  metadata: {name: n3}",
    "    name: &a n4", "    name: *a", "    <<: {name: n5}", "    uid: !!str 5", "    ? name", "    : n6",
    "    labels:", "      a: |", "        b: c", "      d: 'two", "        lines'", "      e: two", "        words",
    "      name: n7", "    name: {}", "\t", "    - a", "5",
])  # fmt: skip


@examples(200)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), st.none() | WRITTEN), max_size=3),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
)
def test_any_yaml_gives_the_objects_places_and_refusals_of_any_file(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, int, str | None]], end: str, mark: str
) -> None:
    lines = YAML.splitlines()
    for place, cut, line in edits:
        lines[place : place + cut] = [] if line is None else [line]
    path = tmp_path_factory.getbasetemp() / "c.yaml"
    path.write_bytes((mark + "".join(line + end for line in lines)).encode())
    assert outcome(load_cluster, str(path)) == outcome(load, str(path))


def outcome(reader: Any, name: str) -> Any:
    try:
        return [(one.where, one.place("metadata.name"), meaning_of(one.object)) for one in reader([name])]
    except UsageError as error:
        return str(error)


def meaning_of(raw: Any) -> Any:
    try:
        match raw["kind"]:
            case "Pod":
                return decode_pod(filled(raw))
            case "Node":
                return decode_node(filled(raw))
    except ObjectError as error:
        return str(error)
    return raw


SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"a": "b"}},
    "matchLabelKeys": ["version"],
}
SPECS: tuple[dict[str, Any], ...] = (
    {
        "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1.5"}}}
        ]
    },
    {"containers": [{"name": "c", "resources": {"requests": {"cpu": "0.1", "memory": "1.0005"}}}]},
    {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}], "hostNetwork": True, "priorityClassName": "high"},
    {"containers": [{"name": "c"}], "topologySpreadConstraints": [SPREAD], "schedulerName": "mine"},
)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_pods_of_a_template_are_read_as_each_alone(form: str, tmp_path: Path) -> None:
    items: list[dict[str, Any]] = []
    for number, spec in enumerate(SPECS * 6):
        metadata: dict[str, Any] = {
            "name": f"p-{number}",
            "uid": f"u-{number}",
            "labels": {"version": f"v{number % 3}"},
        }
        if number % 5:
            metadata["namespace"] = f"n-{number % 5}"
        placed = {**spec, "nodeName": f"node-{number % 4}"} if number % 7 else spec
        statuses = [{"name": "c", "resources": {"requests": {"cpu": f"{number % 2 + 1}.0005"}}}]
        items.append({"kind": "Pod", "metadata": metadata, "spec": placed, "status": {"containerStatuses": statuses}})
    file = tmp_path / f"cluster.{form}"
    written = {"apiVersion": "v1", "kind": "List", "items": items}
    text = json.dumps(written)
    file.write_text(text if form == "json" else yaml.dump(json.loads(text)))
    admission = Admission([{"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}])
    known = SavedPods(admission)
    found = [document.object for document in load_cluster([str(file)])]
    assert {type(one) for one in found} == {SavedObject}
    for raw in found:
        pod, resources = known.read(raw)
        alone = decode_pod(admission.complete_pod(raw))
        assert pod == alone
        assert resources == Cluster().pod_resources(alone)
    assert len(known) < len(items)


def test_number_that_is_too_large_is_a_text_in_any_reader(tmp_path: Path) -> None:
    text = "kind: List\nitems:\n- kind: Pod\n  metadata:\n    name: a\n    labels:\n      commit: 123e4567\n"
    [fast], [slow] = load_cluster([write(tmp_path, text, "c.yaml")]), load([write(tmp_path, text, "c.yaml")])
    assert fast.object["metadata"]["labels"] == slow.object["metadata"]["labels"] == {"commit": "123e4567"}
