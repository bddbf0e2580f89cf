"""What this repository shows of policies is in canonical form."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from policysched.app.checking.explain import as_policy
from policysched.app.checking.findings import expressions
from policysched.app.rewriting.formatting import canonical, format_files, format_source, is_canonical
from policysched.language import message_table
from policysched.model.policy import API_VERSION, KIND
from tools.documents.markdown import DOCUMENTS, ROOT, Block, blocks, shown

FILES = sorted(
    path
    for folder in ("examples", "bench", "crds", "deploy")
    for pattern in ("*.yaml", "*.json")
    for path in (ROOT / folder).rglob(pattern)
    # Helm's own files are no objects.
    if path.is_file() and "chart" not in path.parts
)
WHOLE = [
    (shown(path), block)
    for path in DOCUMENTS
    for block in blocks(path)
    # The example of `fmt` is what it begins with.
    if block.kind == "yaml" and f"kind: {KIND}" in block.text and not block.text.startswith("# gpu.yaml")
]
GUIDE = ROOT / "docs" / "write" / "language.md"
PARTS = [(shown(GUIDE), block) for block in blocks(GUIDE) if block.kind == "yaml" and f"kind: {KIND}" not in block.text]


def test_there_is_something_to_look_at() -> None:
    assert FILES
    assert WHOLE
    assert PARTS


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_files_are(path: Path) -> None:
    [outcome] = format_files([str(path)])
    assert (outcome.problem, outcome.count) == (None, 0)


@pytest.mark.parametrize(("place", "block"), WHOLE)
def test_whole_policies_of_documents_are(place: str, block: Block) -> None:
    assert format_source(block.text, place).count == 0


@pytest.mark.parametrize(("place", "block"), PARTS)
def test_parts_of_policies_of_the_guide_are(place: str, block: Block) -> None:
    assert _others({"apiVersion": API_VERSION, "kind": KIND, "spec": yaml.safe_load(block.text)}) == [], place


@pytest.mark.parametrize("code", message_table())
def test_what_explanations_recommend_is(code: str) -> None:
    assert _others(as_policy(message_table()[code].fix)) == []


def _others(policy: dict[str, object]) -> list[str]:
    """The expressions that are not in canonical form."""
    return [one.text for one in expressions(policy) if not is_canonical(one.text, str(canonical(one)))]
