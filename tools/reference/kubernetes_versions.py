"""The reference of Kubernetes versions: the differences between the releases whose decisions policysched reproduces."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NamedTuple

from policysched.model import release as releases
from policysched.model.release import DEFAULT, RELEASES, Release
from tools.reference.tables import table

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "reference" / "kubernetes-versions.md"
WITNESSES: Final = ROOT / "tests" / "oracle" / "witnesses"
_SOURCE: Final = re.compile(r"\s*Source: (?P<source>.+)\.\s*\Z", re.DOTALL)
NO_DIFFERENCE: Final = frozenset({"version", "is_preview", "generic_workload", "topology_aware", "workload_claims"})
"""Fields of a release that are not in the table of differences."""
HEAD: Final = """---
description: Which Kubernetes versions policysched follows, how to choose one, and every difference between them.
---

# Kubernetes versions

For operators who choose or upgrade a Kubernetes version. policysched decides as the kube-scheduler of one Kubernetes
minor. One installation has the rules of all minors in this table:
"""
CHOICE: Final = """In the preview, amounts beyond 64 bits follow 1.37.

## Choose a version

`--kube-version` of [`policysched run`](commands.md) chooses the minor. With the default `auto`, the scheduler reads the
version of the API server once, at its start, and follows that minor:

| API server | decisions |
|---|---|
| a minor of the table | of this minor |
| an older or newer minor | of the nearest minor in the table, with a warning |
| no version, or the request is refused | of the default minor, with a warning |

The commands `dry-run`, `why` and `plan` treat a live cluster in the same way. For files, `auto` is the default minor;
`replay` follows the minor in the record. In Python, the argument is `kube_version`.

A kube-scheduler of one minor supports API servers of this minor and the next. With another server, a stated minor logs
a warning. The log, the field `reference` of a [decision record](decision-record.md), the metric
`policysched_build_info` and the files of `--record` name the minor. `policysched version -o json` lists all minors.

## Upgrade Kubernetes

A running scheduler keeps its minor, so no decision mixes two minors. If the API server changes its minor, the scheduler
logs a warning within five minutes, and the metric `policysched_kubernetes_skew` shows the difference. Here from 1.36 to
1.37:

1. Check the configuration: `policysched config check --kube-version 1.37 scheduler.yaml`.
2. With a [record](../run/record.md), list the decisions that change:
   `policysched replay /var/lib/policysched --kube-version 1.37`.
3. Upgrade all API servers.
4. Restart policysched: `kubectl -n kube-system rollout restart deployment/policysched`.

To keep the rules of 1.36 during the upgrade, start the scheduler with `--kube-version 1.36`.

## Why `--emulated-version` is something else

`--emulated-version=1.36` of a kube-scheduler 1.37 changes feature gates only: the texts of events, metric labels, the
order of plugins and most differences below stay those of 1.37. `--kube-version 1.36` restores all of them.

## Differences

"Yes" and "no" state whether the sentence is true for a minor. The witness is a case on which the
kube-schedulers of two minors differ and policysched equals each, or a test of the difference. Paths of sources are in
the Kubernetes repository.
[Kubernetes changes](kubernetes-changes.md) lists what random cases show of the newest versions.
"""


class Difference(NamedTuple):
    """A row of the table of differences: the sentences about a field of a release, and the Go source."""

    text: str
    source: str


def page() -> str:
    """Return the text of the reference page about Kubernetes versions."""
    rows = [
        (minor, one.version, "preview" if one.is_preview else "default" if one is DEFAULT else "")
        for minor, one in RELEASES.items()
    ]
    minors = table(("minor", "compared with kube-scheduler", ""), rows)
    listed = table(("difference", *RELEASES, "source", "witness"), map(_row, differences().items()))
    return f"{HEAD}\n{minors}\n{CHOICE}\n{listed}"


def differences() -> dict[str, Difference]:
    """Return the differences by field, from the docstrings of the fields."""
    [found] = (one for one in _tree(Path(releases.__file__)).body if _is_table(one))
    made: dict[str, Difference] = {}
    for field, documented in _documented(found):
        source = _SOURCE.search(documented)
        sentences = documented[: source.start()] if source else documented
        sentences = " ".join(sentences.split()).removeprefix("Whether ")
        is_name = "_" in sentences.partition(" ")[0]
        text = sentences if is_name else sentences[:1].upper() + sentences[1:]
        made[field] = Difference(text, source["source"] if source else "")
    return {one.name: made[one.name] for one in fields(Release) if one.name not in NO_DIFFERENCE}


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _is_table(one: ast.stmt) -> bool:
    return isinstance(one, ast.ClassDef) and one.name == Release.__name__


def _documented(found: Any) -> Iterator[tuple[str, str]]:
    """Yield each field of a class with its docstring, the text after the field."""
    for field, after in zip(found.body, found.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
            yield ast.unparse(field.target), ast.literal_eval(after.value)


def _row(item: tuple[str, Difference]) -> tuple[str, ...]:
    field, one = item
    values = [getattr(release, field) for release in RELEASES.values()]
    shown = [_value(value, before) for value, before in zip(values, (None, *values), strict=False)]
    return one.text, *shown, f"`{one.source}`" if one.source else "", _witness(field)


def _value(value: Any, before: Any) -> str:
    """Return a value for the table; for a collection, the items added and removed since the minor before."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return f"`{value}`" if value else "none"
    kept = frozenset(before or ())
    parts = [f"{'' if before is None else '+ '}`{one}`" for one in sorted(frozenset(value) - kept)]
    parts += [f"− `{one}`" for one in sorted(kept - frozenset(value))]
    return "<br>".join(parts) or ("none" if not value else "same")


def _witness(field: str) -> str:
    """Return the oracle cases that verify a field's difference, or else the file of a test that verifies it."""
    files = sorted(one.stem for one in WITNESSES.glob("*.yaml") if one.stem.partition("-")[0] == field)
    if files:
        return ", ".join(f"`{one}`" for one in files)
    [elsewhere] = (one for one in _tree(WITNESSES.parent / "test_witnesses.py").body if _is_elsewhere(one))
    tests: dict[str, str] = ast.literal_eval(elsewhere.value)  # type: ignore[attr-defined]
    if field not in tests:
        raise SystemExit(f"no witness of {field}: add tests/oracle/witnesses/{field}.yaml or a test to ELSEWHERE")
    return f"`{Path(tests[field]).name}`"


def _is_elsewhere(one: ast.stmt) -> bool:
    return isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == "ELSEWHERE"
