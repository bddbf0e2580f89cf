"""Cases as files, for people and programs.

Knows nothing of decisions. A case with one pod is a folder of three JSON files, named as dry-run's options
call them, since `policysched dry-run` takes the cluster, the pod and the configuration apart; a sequence,
which dry-run does not know, is one file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SEQUENCE = "sequence.json"


def write_case(case: dict[str, Any], folder: Path) -> str:
    """Write a case and give the command that shows our decision about it, or where both sides differ."""
    folder.mkdir(parents=True, exist_ok=True)
    if "sequence" in case:
        _dump(folder / SEQUENCE, case)
        return f"python -m tests.oracle.judge {folder}"
    cluster = {"apiVersion": "v1", "kind": "List", "items": case["objects"]}
    parts = {"cluster": cluster, "pod": case["pod"]}
    if case.get("config") is not None:
        parts["config"] = case["config"]
    for name, content in parts.items():
        _dump(folder / f"{name}.json", content)
    options = " ".join(f"--{name} {folder / name}.json" for name in parts)
    return f"policysched dry-run {options} -o json"


def read_case(folder: Path) -> dict[str, Any]:
    """Read what `write_case` wrote."""
    if (folder / SEQUENCE).exists():
        sequence: dict[str, Any] = _load(folder / SEQUENCE)
        return sequence
    config = folder / "config.json"
    return {
        "id": folder.name,
        "objects": _load(folder / "cluster.json")["items"],
        "pod": _load(folder / "pod.json"),
        "config": _load(config) if config.exists() else None,
    }


def _dump(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
