"""Cases as files that `policysched dry-run` and the oracle both read.

Knows nothing of decisions. A case is a folder of three JSON files, named as dry-run's options call
them, since dry-run takes the cluster, the pod and the configuration apart.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def write_case(case: dict[str, Any], folder: Path) -> str:
    """Write a case with one pod and give the command that shows our decision about it."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = {"apiVersion": "v1", "kind": "List", "items": case["objects"]}
    parts = {"cluster": cluster, "pod": case["pod"]}
    if case.get("config") is not None:
        parts["config"] = case["config"]
    for name, content in parts.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    options = " ".join(f"--{name} {folder / name}.json" for name in parts)
    return f"policysched dry-run {options} -o json"


def read_case(folder: Path) -> dict[str, Any]:
    """Read what `write_case` wrote."""
    config = folder / "config.json"
    return {
        "id": folder.name,
        "objects": _load(folder / "cluster.json")["items"],
        "pod": _load(folder / "pod.json"),
        "config": _load(config) if config.exists() else None,
    }


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
