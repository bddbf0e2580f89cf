"""The recipes of docs/inside/architecture.md: each change is made in the files that the page lists, and works.

A change is made in a copy of the package, in exactly those files, and seen from outside: by a command, or by a program
that imports the copy.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.documents.markdown import ROOT, codes

ARCHITECTURE = ROOT / "docs" / "inside" / "architecture.md"
COMMAND = "from policysched.cli import main; main()"
Edit = tuple[str, str]
"""A text that stands in a file once, and what stands there instead; an empty one stands for a new file."""
NODES = "apiVersion: v1\nkind: List\nitems:\n" + "".join(
    f"- {{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, status: {{allocatable: {{cpu: 4, pods: 9}}}}}}\n"
    for name in ("short", "a-longer-name")
)


def recipe(title: str) -> list[str]:
    """The files of a recipe: the first code of each of its numbered lines, in their order.

    A new file is named by its folder.
    """
    parts = re.split(r"^### +", ARCHITECTURE.read_text("utf-8"), flags=re.MULTILINE)
    steps = next(part for part in parts if part.startswith(f"{title}\n")).split("\n## ")[0]
    return [codes(step)[0] for step in re.findall(r"^\d+\. .*", steps, flags=re.MULTILINE)]


class Copy:
    """A copy of the package in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("policysched", "crds"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))

    def change(self, title: str, edits: dict[str, list[Edit]]) -> None:
        """Change the files of a recipe, and no other."""
        listed = recipe(title)
        assert len(edits) == len(listed)
        for name, given, changes in zip(listed, edits, edits.values(), strict=True):
            assert given.startswith(name) if name.endswith("/") else given == name
            path = self.folder / given
            assert path.exists() is not name.endswith("/"), (
                f"{given}: a file that is new stands in a folder of the page"
            )
            for old, new in changes:
                text = path.read_text("utf-8") if old else ""
                assert not old or text.count(old) == 1, f"{name}: {old!r} stands there {text.count(old)} times"
                path.write_text(text.replace(old, new) if old else new, "utf-8")

    def run(self, program: str, *arguments: str) -> str:
        """Run a program that imports the copy, and give what it prints."""
        environment = {"PYTHONPATH": str(self.folder), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(self.folder)!r}); {program}", *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def record(self, pod: str, *more: str) -> dict[str, object]:
        """Give the decision about a pod."""
        (self.folder / "nodes.yaml").write_text(NODES)
        (self.folder / "pod.yaml").write_text(pod)
        arguments = ("dry-run", "--cluster", "nodes.yaml", "--pod", "pod.yaml", "-o", "json", *more)
        found: dict[str, object] = json.loads(self.run(COMMAND, *arguments))
        return found


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    yield Copy(tmp_path)


def pod(namespace: str = "default") -> str:
    metadata = {"name": "web", "namespace": namespace}
    return yaml.safe_dump({"kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}})


def before(text: str) -> Callable[[str], Edit]:
    return lambda new: (text, new + text)


PLUGIN = '''"""NodeNameLength: prefer nodes of long names."""

from __future__ import annotations

import numpy as np

from policysched.framework import Cluster, Rows, ScorePlugin, Scores
from policysched.model.objects import Pod
from policysched.plugins.bases import ScoresInRange
from policysched.state.tables.nodes import NodeTable


class NodeNameLength(ScoresInRange, ScorePlugin[NodeTable]):
    """The plugin."""

    name = "NodeNameLength"

    def prepare_score(self, pod: Pod, cluster: Cluster) -> NodeTable:
        """Read the nodes."""
        return cluster.nodes

    def score(self, state: NodeTable, rows: Rows) -> Scores:
        """Give the lengths of the names."""
        names = [state.strings.text(code) if code >= 0 else "" for code in state.name.data[rows]]
        return np.array([min(len(name), 100) for name in names], np.int64)
'''


def test_difference_is_a_field_of_the_release_that_a_plugin_gets(copy: Copy) -> None:
    table, plugin, registry = recipe("A difference between Kubernetes minors")
    text = '    """Whether ImageLocality scores 7 without images.\n\n    Source: none.\n    """\n'
    edits: dict[str, list[Edit]] = {
        table: [
            before("    image_volumes_count: bool\n")(f"    absent_images_score: bool\n{text}"),
            before("    image_volumes_count=False,\n")("    absent_images_score=False,\n"),
            ('    version="v1.38.0-beta.0",\n', '    version="v1.38.0-beta.0",\n    absent_images_score=True,\n'),
        ],
        plugin: [
            ("*, volumes_count: bool = False) -> None:", "*, volumes_count: bool = False, absent: int = 0) -> None:"),
            before("        self._volumes_count = volumes_count\n")("        self._absent = absent\n"),
            (
                "return ImageScores(nodes, None)",
                "return ImageScores(nodes, np.full(nodes.columns.capacity, self._absent))",
            ),
        ],
        registry: [
            (
                "volumes_count=release.image_volumes_count)",
                "volumes_count=release.image_volumes_count, absent=7 * release.absent_images_score)",
            )
        ],
    }
    copy.change("A difference between Kubernetes minors", edits)
    records: dict[str, Any] = {minor: copy.record(pod(), "--kube-version", minor) for minor in ("1.37", "1.38")}
    scores = {minor: one["scores"]["short"]["ImageLocality"] for minor, one in records.items()}
    assert scores == {"1.37": 0, "1.38": 7}


def test_default_plugin_is_a_module_and_a_row_of_the_registry(copy: Copy) -> None:
    folder, registry = recipe("A default plugin")
    row = '        "TaintToleration": PluginEntry('
    imported = "from policysched.plugins.nodes.node_affinity import"
    name = f"{folder}node_name_length".replace("/", ".")
    edits: dict[str, list[Edit]] = {
        f"{folder}node_name_length.py": [("", PLUGIN)],
        registry: [
            before(imported)(f"from {name} import NodeNameLength\n"),
            before(row)('        "NodeNameLength": PluginEntry("score", NodeNameLength, weight=3),\n'),
        ],
    }
    copy.change("A default plugin", edits)
    scores = copy.record(pod())["scores"]
    assert {node: of["NodeNameLength"] for node, of in scores.items()} == {"short": 15, "a-longer-name": 39}  # type: ignore[attr-defined]


def test_field_of_a_pod_is_in_the_struct_the_schema_and_the_plugin(copy: Copy) -> None:
    model, schema, plugin = recipe("A field of a Kubernetes object")
    avoided = "        if pod.spec.avoid_node:\n            avoided, nodes = pod.spec.avoid_node, cluster.nodes\n"
    avoided += "            return RowTest(lambda rows: nodes.name.data[rows] == nodes.strings.sought(avoided))\n"
    edits: dict[str, list[Edit]] = {
        model: [before("    host_users: bool | None = None\n")('    avoid_node: str = ""\n')],
        schema: [("\nPodSpec volumes=1:", "\nPodSpec avoidNode=99:string volumes=1:")],
        plugin: [before("        wanted, nodes = pod.spec.node_name, cluster.nodes\n")(avoided)],
    }
    copy.change("A field of a Kubernetes object", edits)
    asked = yaml.safe_load(pod())
    asked["spec"]["avoidNode"] = "short"
    record = copy.record(yaml.safe_dump(asked))
    assert record["selected"] == "a-longer-name"
    assert record["rejected"]["short"]["plugin"] == "NodeName"  # type: ignore[index]


def test_function_of_the_language_is_a_rule_a_scalar_operation_and_a_kernel(copy: Copy) -> None:
    rule, scalar, kernel = recipe("A function of the language")
    edits: dict[str, list[Edit]] = {
        rule: [
            before('    "round": Function(')('    "squared": Function(_same_unit, 1, 1, "x", "its square", _ALL),\n')
        ],
        scalar: [before("    Op.ABS: abs,\n")('    "squared": lambda value: value * value,\n')],
        kernel: [before("    Op.LEAST: _combined(")('    "squared": lambda run, node: run.memo[node.args[0]] ** 2,\n')],
    }
    copy.change("A function of the language", edits)
    score = {"name": "squares", "value": "squared(node.allocatable.pods) + 1"}
    assert scored(copy, {"scores": [score]}) == {"short": 82, "a-longer-name": 82}


def scored(copy: Copy, spec: dict[str, object], of: str = "") -> dict[str, object]:
    """The raw scores of the only rule of a policy that is tried."""
    return dict(tried(copy, spec, of)["scores"]["squares"])  # type: ignore[index]


def tried(copy: Copy, spec: dict[str, object], namespace: str = "") -> dict[str, object]:
    """What a record says of the rules of a policy that is tried."""
    policy = {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": {"name": "p"}}
    (copy.folder / "policy.yaml").write_text(yaml.safe_dump(policy | {"spec": spec}))
    found = copy.record(pod(namespace or "default"), "--policy", "policy.yaml")
    return found.get("rules", {}).get("p", {})  # type: ignore[attr-defined, no-any-return]


def test_command_is_flags_a_module_and_a_name_in_the_list(copy: Copy) -> None:
    flags, folder, commands = recipe("A command")
    hello = '"""`policysched hello`."""\n\nfrom policysched.cli.output import print_text\n\n\ndef hello(flags):\n'
    hello += '    """Greet."""\n    print_text(f"hello {flags.name}")\n    return 0\n'
    greeted = "@dataclass(frozen=True, slots=True, kw_only=True)\nclass HelloFlags(Flags):\n"
    greeted += '    """Greet somebody."""\n\n    name: Annotated[str, typer.Argument(metavar="NAME")]\n\n\n'
    demo = "@dataclass(frozen=True, slots=True, kw_only=True)\nclass DemoFlags(Flags):\n"
    edits: dict[str, list[Edit]] = {
        flags: [(demo, greeted + demo)],
        f"{folder}processes/hello.py": [("", hello)],
        commands: [
            ('"sandbox", "demo")', '"sandbox", "demo", "hello")'),
        ],
    }
    copy.change("A command", edits)
    assert copy.run(COMMAND, "hello", "world") == "hello world\n"
    assert "Greet somebody." in copy.run(COMMAND, "--help")


def test_field_of_the_resource_is_in_the_schema_the_model_and_where_it_acts(copy: Copy) -> None:
    schema, model, acts = recipe("A field of the SchedulingPolicy")
    why = (
        "if self._policy.spec.namespaces and pod.metadata.namespace not in self._policy.spec.namespaces:\n            "
    )
    why += 'return "namespaces do not hold the pod\'s"\n        '
    edits: dict[str, list[Edit]] = {
        schema: [
            before("              includeSystemPods:\n")(
                "              namespaces: {type: array, items: {type: string}}\n"
            )
        ],
        model: [before("    include_system_pods: bool = False\n")("    namespaces: list[str] = []\n")],
        acts: [before("names, pods = self._policy.spec.scheduler_names, self._policy.pods\n")(why)],
    }
    copy.change("A field of the SchedulingPolicy", edits)
    spec: dict[str, object] = {"namespaces": ["a"], "filters": [{"name": "none", "require": "false"}]}
    assert tried(copy, spec, "a")["filters"] == {"none": {"short": "false", "a-longer-name": "false"}}
    assert "filters" not in tried(copy, spec, "b")
    assert "1 policy: 0 errors" in copy.run(COMMAND, "check", "policy.yaml")


def test_watched_kind_is_a_struct_and_a_row_of_the_table(copy: Copy) -> None:
    structs, kinds = recipe("A watched kind")
    struct = 'class Rack(Struct, frozen=True):\n    """A rack."""\n\n    metadata: Metadata = Metadata()\n'
    struct += "    units: Int32 = 0\n\n\n"
    row = '        ApiKind("example.io/v1", "Rack", "racks", partial(decode, Rack, "Rack"), Resource.NODE),\n'
    edits: dict[str, list[Edit]] = {
        structs: [before("class PriorityClass(Struct")(struct)],
        kinds: [
            before("from policysched.model.policy import")("from policysched.model.objects.cluster import Rack\n"),
            before("        NODES,\n        NAMESPACES,\n")(row),
        ],
    }
    copy.change("A watched kind", edits)
    program = """
from prometheus_client import CollectorRegistry
from policysched.app.clock import SystemClock
from policysched.app.running.process import Process
from policysched.app.running.run_options import RunOptions
from policysched.metric_sources.no_source import NoSource
from policysched.framework import Cluster
from policysched.kube.connection import Connection
from policysched.model.kinds import KINDS
from policysched.apimachinery.resources import Registry
rack = KINDS["Rack"].decode(b'{"metadata": {"name": "r", "namespace": "n"}, "units": 42}')
cluster = Cluster()
cluster.take(rack)
print({key: one.units for key, one in cluster.objects.of(type(rack)).items()})
process = Process(RunOptions(), Connection("http://nowhere", SystemClock()), NoSource(), CollectorRegistry())
print([one.watched.path for one in process.reflectors if one.watched.kind == "Rack"])
print([row.qualified for row in Registry() if row.kind == "Rack"])
"""
    assert copy.run(program).splitlines() == ["{'n/r': 42}", "['/apis/example.io/v1/racks']", "['racks.example.io']"]


def test_extension_point_is_a_base_class_a_tuple_of_the_profile_and_its_caller(copy: Copy) -> None:
    protocol, profile, enabled, asks = recipe("An extension point")
    asked = "            await at_point(self.timing, POST_BIND, profile.scheduler_name, posting)\n"
    edits: dict[str, list[Edit]] = {
        protocol: [
            before("class PostBindPlugin(")(
                'class TellPlugin(Plugin):\n    """A plugin that is told where pods are."""\n\n'
                "    def tell(self, assumed: AssumedPod) -> None:\n"
                '        """Take note of a bound pod."""\n\n\n'
            )
        ],
        profile: [
            before("    post_binds: tuple[")("    tells: tuple[TellPlugin, ...] = ()\n"),
            ("import BindPlugin, ", "import BindPlugin, TellPlugin, "),
        ],
        enabled: [
            before("            post_binds=tuple(")(
                '            tells=tuple(one for one in self._at("postBind") if hasattr(one, "tell")),\n'
            )
        ],
        asks: [(asked, f"{asked}        for one in profile.tells:\n            one.tell(assumed)\n")],
    }
    copy.change("An extension point", edits)
    program = """
import asyncio
from dataclasses import replace
from policysched.app.demo.demo import demo_nodes, demo_pod
from policysched.app.demo.scheduled_sandbox import scheduled_sandbox
from policysched.app.running import process
class Told:
    name = "Told"
    def tell(self, assumed):
        print(assumed.pod.metadata.name, "is on", assumed.node)
made = process.default_profile
process.default_profile = lambda name, release: replace(made(name, release=release), tells=(Told(),))
async def main():
    async with scheduled_sandbox(demo_nodes()) as on:
        await on.api.create(demo_pod("web", {"disk": "hdd"}))
        async def bound():
            return (await on.api.get("Pod", "web"))["spec"].get("nodeName")
        await on.until(bound, "a node")
        await asyncio.sleep(0.2)
asyncio.run(main())
"""
    assert copy.run(program) == "web is on piworknode003\n"


def test_extension_point_is_in_the_files_that_know_a_present_one() -> None:
    known = re.compile(r'\bPostBindPlugin\b|\bpost_binds?\b|"postBind"')
    modules = (ROOT / "policysched").rglob("*.py")
    found = {str(path.relative_to(ROOT)) for path in modules if known.search(path.read_text("utf-8"))}
    every_point = {"policysched/framework/__init__.py", "policysched/app/configuration/model.py"}
    out_of_tree = {"policysched/framework/out_of_tree/methods.py", "policysched/framework/out_of_tree/adapter.py"}
    out_of_tree |= {"policysched/app/plugins/templates.py"}  # what new plugins begin with
    assert found - every_point - out_of_tree == set(recipe("An extension point"))
