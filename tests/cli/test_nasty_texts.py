"""No text of an object, a file's name or a server's answer reaches a terminal, a log or an object as it is."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import logging
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console
from rich.text import Text

from policysched.app.demo.demo import decision_parts as demo_parts
from policysched.app.dry_run.tables import plain_table
from policysched.cli.output import print_error, print_json, print_text
from policysched.cli.rich_output import print_parts
from policysched.framework import Cluster, Event
from policysched.klog import TextFormatter
from policysched.kube.events.bodies import NOTE_LIMIT, EventContent, create_body
from policysched.model.policy import PolicyKey, decode_policy
from policysched.rules.policy_set.store import PolicyStore
from policysched.rules.policy_status.status import make_status
from policysched.schedule.binding import Binder, Failure
from policysched.schedule.observer import AttemptResult
from policysched.visible import LIMIT, is_hidden
from tests.build import pod as made_pod
from tests.cli.conftest import Command, Write
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock, queue
from tools.documents.markdown import ROOT

NASTY: Final = {
    "escape": "a\x1b[2J\x1b]0;forged\x07b",
    "c1": "a\x9b2Jb\x85c",
    "lines": "a\nerror: forged\n::error::forged\r\n2026-01-01T00:00:00 forged",
    "percent": "a%0A::error::forged",
    "bidi": "a\u202eb\u2066c\u2069d",
    "zero width": "a\u200bb\u2060c\ufeffd\U000e0041e\u00ad",
    "blank": "a\u3164b\u2800c\ufe0f",
    "separators": "a\u2028error: forged\u2029::error::forged",
    "markup": "a[red]b[/red][link=http://forged.example]c[/link]",
    "command": "::error::forged",
    "command behind blanks": "   ::add-mask::a",
    "older command": "a ##[error]forged",
    "long": "x" * 250_000,
}
TOGETHER: Final = {
    "together": "".join(text for name, text in NASTY.items() if name != "long"),
    "lines": NASTY["lines"],
    "long": "x" * 20_000,
}
COMMAND: Final = re.compile(r"\s*::(?!(error|warning|notice) )[a-z]|.*##\[")
"""What a runner of GitHub's workflows takes for a command, but those with a place or a title, which are ours."""
FORGED: Final = ("error: forged", "::error::forged", "2026-01-01T00:00:00 forged")


def check_shown(text: str, limit: int = 10_000) -> None:
    """Fail where a text would control a terminal or forge a line."""
    assert {one for one in text if is_hidden(one)} <= {"\n"}
    assert not [line for line in text.splitlines() if line.startswith(FORGED)]
    assert not [line for line in text.splitlines() if COMMAND.match(line)]
    assert "x" * (limit + 1) not in text


def quoted(value: Any) -> str:
    """Write a value into YAML."""
    return json.dumps(value)


def policy(text: str) -> str:
    """Make a policy with a text wherever one may stand, some of it wrong."""
    spec = {
        "podSelector": {"matchLabels": {"app": text}},
        "filters": [
            {"name": "f", "require": f'node.labels[{quoted(text[:900])}] == "x"', "message": text},
            {"name": text[:40], "require": f"node.{text[:60]} == 1"},
        ],
    }
    metadata = {"name": text, "annotations": {"a": text}}
    return quoted(
        {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": metadata, "spec": spec}
    )


def cluster(text: str) -> str:
    """Make nodes named by a text: one that fits, one with a taint, one that a policy keeps out."""
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    taint = {"key": text, "value": text, "effect": "NoSchedule"}
    nodes = [
        {"metadata": {"name": text, "labels": {"a": text}}, "status": status},
        {"metadata": {"name": f"t{text}"}, "spec": {"taints": [taint]}, "status": status},
        {"metadata": {"name": f"p{text}"}, "status": status},
    ]
    rule = {"name": "f", "require": 'has(node.labels["a"])', "message": text}
    score = {"name": "s", "value": f'if(node.labels["a"] == {quoted(text[:500])}, 10, 5) ?? 1'}
    kept = {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": {"name": "kept"}}
    listed = [{"apiVersion": "v1", "kind": "Node", **one} for one in nodes]
    return quoted({"kind": "List", "items": [*listed, {**kept, "spec": {"filters": [rule], "scores": [score]}}]})


def pod(text: str) -> str:
    """Make a pod named by a text."""
    metadata = {"name": text, "namespace": text, "labels": {"app": text}}
    spec = {"schedulerName": text, "containers": [{"name": text, "image": text}]}
    return quoted({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


@pytest.mark.parametrize("text", TOGETHER.values(), ids=TOGETHER)
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "p.json"),
        ("check", "-o", "json", "p.json"),
        ("check", "-o", "github", "p.json"),
        ("check", "p.json", "--cluster", "c.json"),
        ("fmt", "--diff", "p.json"),
        ("dry-run", "--cluster", "c.json", "--pod", "pod.json"),
        ("dry-run", "--cluster", "c.json", "--pod", "pod.json", "-o", "json"),
        ("dry-run", "--cluster", "c.json", "--pod", "pod.json", "--policy", "p.json"),
        ("dry-run", "--cluster", "c.json", "--pod", "pod.json", "--metrics-file", "m.json"),
        ("dry-run", "--cluster", "c.json", "--pod", "p.json"),
        ("dry-run", "--cluster", "bad.json", "--pod", "pod.json"),
        ("dry-run", "--cluster", "c.json", "--pod", "pod.json", "--config", "config.json"),
        ("sandbox", "--load", "bad.json"),
    ],
    ids=" ".join,
)
def test_objects_do_not_control_what_commands_print(
    command: Command, write: Write, arguments: tuple[str, ...], text: str
) -> None:
    write("p.json", policy(text))
    write("c.json", cluster(text))
    write("pod.json", pod(text))
    write("m.json", quoted({text: {text: text}}))
    write("config.json", quoted({"kind": "KubeSchedulerConfiguration", "apiVersion": text, text: text}))
    write("bad.json", quoted({"kind": text, "apiVersion": text, "metadata": {"name": text}, "spec": text}))
    done = command(*arguments)
    assert done.out + done.problem
    check_shown(done.problem)
    if "json" in arguments and done.code < 2:
        # A record's names are data; what findings say is for people.
        check_shown(done.out, limit=10**9 if "dry-run" in arguments else 10_000)
        json.loads(done.out)
    else:
        check_shown(done.out)


@pytest.mark.parametrize("text", [TOGETHER["together"][:80], NASTY["lines"], NASTY["separators"]])
def test_file_names_do_not_control_what_commands_print(command: Command, tmp_path: Path, text: str) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    name = text.replace("/", "_")
    (folder / f"{name}.yaml").write_text("kind: SchedulingPolicy\nspec: 5\n", "utf-8")
    for arguments in (
        ("check", "d"), ("check", "-o", "github", "d"), ("check", "-o", "json", "d"), ("check", name), ("fmt", "d"),
        ("dry-run", "--cluster", "d", "--pod", name), ("dry-run", "--pod", name), (name,), ("explain", name),
        ("sandbox", "--load", name), ("check", f"--{name}"), ("run", "--kubeconfig", name),
        ("run", "--metrics-interval", name),
    ):  # fmt: skip
        done = command(*arguments)
        check_shown(done.out + done.problem)


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_what_is_printed_is_one_line_each(capsys: pytest.CaptureFixture[str], text: str) -> None:
    print_text(text)
    print_error(text)
    captured = capsys.readouterr()
    assert (captured.out.count("\n"), captured.err.count("\n")) == (1, 1)
    check_shown(captured.out, limit=len(text))
    check_shown(captured.err.removeprefix("error: "), limit=LIMIT)
    print_json({text: [text]})
    out = capsys.readouterr().out
    assert json.loads(out) == {text: [text]}
    check_shown(out, limit=len(text))


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_a_record_is_one_line_of_the_log(text: str) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter())
    log = logging.Logger("policysched.test")
    log.addHandler(handler)
    log.warning("pod=%s: %s", text, ValueError(text))
    assert stream.getvalue().count("\n") == 1
    try:
        dict[str, str]()[text]
    except KeyError:
        log.exception("failed: %s", text)
    shown = stream.getvalue()
    check_shown(shown, limit=LIMIT)
    assert all(line.startswith(("W", "E", "  | ")) for line in shown.splitlines())


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
async def test_an_event_and_a_condition_hold_nothing_hidden(text: str) -> None:
    client = FakeClient()
    clock = StandingClock()
    binder = Binder(Cluster(), queue(clock), client, clock, print)
    await binder.report_failure(made_pod("a"), Failure(AttemptResult.UNSCHEDULABLE, text))
    await asyncio.sleep(0)
    [event], [(_, condition)] = client.events, client.conditions
    check_shown(condition["message"] + event.note, limit=LIMIT)
    assert len(condition["message"]) < LIMIT + 60
    body = json.loads(
        create_body(
            EventContent.of(Event(made_pod("a"), "Warning", "R", "A", text, datetime(2026, 1, 1, tzinfo=UTC))), "e", "h"
        )
    )
    check_shown(body["note"])
    assert len(body["note"].encode()) <= NOTE_LIMIT


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_a_status_holds_nothing_hidden(text: str) -> None:
    raw = json.loads(policy(text))
    raw["metadata"]["name"] = "p"
    raw["spec"]["filters"][1]["name"] = "g"
    store = PolicyStore()
    store.apply(decode_policy(raw))
    entry = store.get(PolicyKey("p"))
    assert entry is not None
    status = make_status(entry, "policysched", datetime(2026, 1, 1, tzinfo=UTC))
    assert status["diagnostics"]
    told = [str(part) for one in (*status["diagnostics"], *status["conditions"]) for part in one.values()]
    check_shown("\n".join(told), limit=LIMIT)


def test_the_demo_shows_names_as_they_are_written() -> None:
    text = NASTY["escape"]
    record = {"scores": {text: {text: 5}}, "rules": {text: {"filters": {}, "scores": {text: {text: 5.0}}}}}
    out = Console(file=io.StringIO(), width=300, markup=False)
    for part in demo_parts([(text, text, record)]):
        out.print(part)
    check_shown(out.file.getvalue())  # type: ignore[attr-defined]


ALLOWED: Final = {"policysched/cli/output.py", "policysched/cli/rich_output.py"}
OWN_TEXTS: Final = {
    "policysched/cli/commands/policies/explain.py": "explanations, which are ours",
    "policysched/cli/commands/policies/rewriting.py": "bytes of a file or a difference; visible on terminals",
    "policysched/cli/commands/processes/demo.py": "made visible there",
}
"""Modules that print by themselves, and what."""


def test_nothing_is_printed_past_the_edge() -> None:
    """Other modules print through these two."""
    found = set()
    for path in sorted((ROOT / "policysched").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if any(_prints(node) for node in ast.walk(ast.parse(path.read_text("utf-8")))):
            found.add(name)
    assert found - ALLOWED == set(OWN_TEXTS)


def _prints(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    return (
        called in ("print", "typer.echo", "typer.secho", "Console", "rich.print")
        or called.endswith((".print", ".writelines"))
        or (called.startswith(("sys.stdout.", "sys.stderr.")) and called.endswith("write"))
    )


@pytest.mark.parametrize("width", [40, 200])
def test_no_line_that_wrapping_makes_is_a_command_of_a_workflow(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as workflows set it; the output is no terminal all the same
    monkeypatch.setattr("policysched.cli.rich_output.WIDTH", width)
    text = " ".join(["x" * number + " ::error::forged" for number in range(60)])
    print_parts([Text(text), plain_table(None, ["a"], [[text]])])
    lines = capsys.readouterr().out.splitlines()
    assert sum("error::forged" in line for line in lines) == 2
    assert not [line for line in lines if line.strip().startswith("::")]
