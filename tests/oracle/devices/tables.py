"""Kubernetes' own table of cases for the plugin, as its test plays them: what it begins with, and what each step did.

The plugin's package is copied out of the module cache into a folder of its own, and its test is given a few calls that
write down what it sees; nothing of it is kept but what they wrote. Each case passes there, or there is no table.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.controlplane.golang import BuildError, find_go, fingerprint, go_build, keep_latest, program_folder
from tests.controlplane.modules import KUBERNETES
from tests.controlplane.releases import Release

Thing: TypeAlias = dict[str, Any]

MODULE: Final = Path(__file__).resolve().parents[2] / "conformance_suite"
"""The module whose dependencies the package's tests need, too."""
DUMP: Final = Path(__file__).resolve().parent / "testdata"
PACKAGE: Final = "pkg/scheduler/framework/plugins/dynamicresources"
TESTS: Final = ("dynamicresources_test.go", "dra_manager_test.go")
"""The table's file, and the file with what it needs."""
SECONDS: Final = 300.0
_SCORE: Final = "testCtx.verify(tCtx, tc.want.score.forNode(nodeName), initialObjects, tc.pod, nil, status)"
_NORMALIZED: Final = "testCtx.verify(tCtx, tc.want.normalizeScore, initialObjects, tc.pod, nil, status)"
_VERIFY: Final = "testPod *v1.Pod, result interface{}, status *fwk.Status) {\n"
_SET_UP: Final = "\n\treturn tc\n"
_CASE: Final = "tc.dumpCase(tCtx, args, features, failPatch, len(apiReactors), nodes, objs)"
_PREPARED: Final = 'tCtx.ExpectNoError(err, "prepare update")\n'
CALLS: Final = (
    (_VERIFY, f"{_VERIFY}\ttc.dump(tCtx, testPod, result, status)\n", 1),
    (_SET_UP, _SET_UP.replace("\treturn tc", f"\t{_CASE}\n\treturn tc"), 1),
    (_SCORE, _SCORE.replace("nil", "score"), 1),
    (_NORMALIZED, _NORMALIZED.replace("nil", "scores"), 1),
    (_PREPARED, f"{_PREPARED}\t\t\t\tdumpPrepared(tCtx, obj)\n", 2),
)
"""What is put into the test: a text, what takes its place, and how often it is there."""


@dataclass
class TableCase:
    """One case of the table.

    `begin` has nodes, claims, slices, classes, pods, the plugin's arguments and its features; `steps` are those of the
    test in their order: what somebody else has `prepared`, and what the plugin answered at a point of its own.
    """

    name: str
    begin: Thing
    steps: list[Thing] = field(default_factory=list)


def table(release: Release) -> list[TableCase]:
    """Play a release's table once per version of all that it is made of, and read what was written down.

    Raises:
        BuildError: it cannot be built, or does not pass.
    """
    file = program_folder(release) / f"plugin-table-{_version(release)}.jsonl"
    if not file.exists():
        _play(file, release)
    file.touch()
    keep_latest("plugin-table-*.jsonl", 2, release)
    return _read(file.read_text("utf-8"))


def _version(release: Release) -> str:
    made_of = [fingerprint(MODULE, release=release), (DUMP / "dump_test.go").read_text("utf-8"), repr(CALLS)]
    return hashlib.sha256("".join(made_of).encode()).hexdigest()[:16]


def _play(file: Path, release: Release) -> None:
    with tempfile.TemporaryDirectory(prefix="policysched-table-") as folder:
        work = Path(folder)
        _copy(work, release)
        program = work / "table.test"
        go_build(work, "./plugin", program, tests=True, release=release)
        draft = work / "table.jsonl"
        told = os.environ | {"POLICYSCHED_TABLES": str(draft)}
        command = ["nice", str(program), "-test.run=^TestPlugin$"]
        done = subprocess.run(command, env=told, cwd=work, capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            raise BuildError(f"the plugin's table does not pass:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
        shutil.copyfile(draft, file.with_suffix(".new"))
        file.with_suffix(".new").rename(file)


def _copy(work: Path, release: Release) -> None:
    """Copy the package and what it is built with, and put the calls into its test."""
    own = release.mod_file(MODULE)
    for path in (own, own.with_suffix(".sum")):
        shutil.copyfile(path, work / f"go{path.suffix}")
    plugin = work / "plugin"
    plugin.mkdir()
    for path in (_kubernetes(release) / PACKAGE).glob("*.go"):
        if not path.name.endswith("_test.go") or path.name in TESTS:
            (plugin / path.name).write_text(path.read_text("utf-8"), "utf-8")
    test = plugin / "dynamicresources_test.go"
    test.write_text(with_calls(test.read_text("utf-8")), "utf-8")
    shutil.copyfile(DUMP / "dump_test.go", plugin / "dump_test.go")


def with_calls(text: str) -> str:
    """Put the calls into the test's text.

    Raises:
        BuildError: the text is another one than they are made for.
    """
    for old, new, count in CALLS:
        if text.count(old) != count:
            raise BuildError(f"{text.count(old)} places instead of {count} with {old!r}")
        text = text.replace(old, new)
    return text


def _kubernetes(release: Release) -> Path:
    command = [
        str(find_go(release.go)),
        "list",
        f"-modfile={release.mod_file(MODULE)}",
        "-m",
        "-f",
        "{{.Dir}}",
        KUBERNETES,
    ]
    done = subprocess.run(command, cwd=MODULE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"no sources of Kubernetes:\n{done.stderr}")
    return Path(done.stdout.strip())


def _read(text: str) -> list[TableCase]:
    cases: dict[str, TableCase] = {}
    for line in map(json.loads, text.splitlines()):
        _, name, *rest = re.split("/", line["name"], maxsplit=2)
        if line["step"] == "begin":
            cases[name] = TableCase(name, line)
        else:
            cases[name].steps.append(line | {"point": rest[0] if rest else ""})
    return [cases[name] for name in sorted(cases)]
