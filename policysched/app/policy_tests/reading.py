"""Reading of test files: each error has file, line and column.

A folder stands for all files under it that are named like tests. The error for an unknown field contains the nearest
known one, from the JSON schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from policysched.app.policy_tests.file_format import PolicyTest, PolicyTestFile, PolicyTestStep, json_schema
from policysched.errors import UsageError
from policysched.language.messages.suggestions import did_you_mean
from policysched.reading import positions
from policysched.reading.documents import Document, Source
from policysched.reading.files import TESTS, read_text, why
from policysched.reading.positions import SourcePosition
from policysched.reading.yaml_nodes import read_yaml

_AT: Final = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_TYPES: Final = re.compile(r"Expected `(?P<expected>[^`]*)`, got `(?P<got>[^`]*)`")
_VALUE: Final = re.compile(r"Invalid enum value '(?P<value>.*)'", re.DOTALL)
_NAMES: Final[Mapping[str, str]] = {
    "object": "an object", "array": "a list", "str": "a text", "int": "a whole number", "float": "a number",
    "bool": "true or false", "null": "nothing",
}  # fmt: skip
_ANY: Final = "[...]"
_OF_BOTH: Final = frozenset(("result", "reason"))
"""Fields that an expectation about a pod and an expectation about a pod group can both have."""
_OF_GROUPS: Final = frozenset(("placed", "values", "perValue", "members", "victims"))
"""Fields that only an expectation about a pod group can have."""


@dataclass(frozen=True, slots=True)
class PolicyTestSource:
    """The content of a test file, from a file or a Python value, with the positions of its fields."""

    name: str
    folder: Path
    written: PolicyTestFile
    document: Document | None
    is_list: bool
    """Whether the file contains only a list of tests."""

    def path_of(self, index: int) -> str:
        """Return the path of a test's field in the content of the test file."""
        return f"[{index}]" if self.is_list else f"tests[{index}]"

    def place(self, path: str) -> SourcePosition | None:
        """Return the position of a field in the test file; None for content from a Python value."""
        return None if self.document is None else self.document.place(path)

    def refusal(self, path: str, problem: object, *, at_key: bool = False) -> UsageError:
        """Return an error about a field, with its position in the test file."""
        return _refusal(self.name, self.document, path, problem, at_key=at_key)


def find_files(names: Iterable[str]) -> list[Path]:
    """Return the test files for names: files as given, and files named like tests in folders.

    Raises:
        UsageError: a file does not exist, or a folder has no tests.
    """
    found: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        try:
            if not path.is_dir():
                found[path] = None
                continue
            under = sorted(one for one in path.rglob("*") if TESTS.fullmatch(one.name) and one.is_file())
        except OSError as error:
            raise UsageError(f"{name}: {why(error)}") from error
        if not under:
            raise UsageError(f"{name}: no tests.yaml or *-tests.yaml file in the folder")
        found |= dict.fromkeys(under)
    return list(found)


def read_tests(path: Path) -> PolicyTestSource:
    """Read a test file.

    Raises:
        UsageError: the content is not valid; the text has file, line and column.
    """
    name, text = str(path), read_text(str(path))
    documents = read_yaml(text, name)
    if len(documents) != 1:
        raise UsageError(f"{name}: expected one YAML document, got {len(documents)}")
    [(value, root)] = documents
    document = Document({}, Source(name, lambda: text, lambda: root))
    return _converted(value, name, path.parent, document)


def take_tests(value: Any) -> PolicyTestSource:
    """Convert a value with the content of a test file; names of files are relative to the current folder.

    Raises:
        UsageError: the value is not valid.
    """
    return _converted(value, "tests", Path(), None)


def _converted(value: Any, name: str, folder: Path, document: Document | None) -> PolicyTestSource:
    shape: Any = list[PolicyTest] if isinstance(value, list) else PolicyTestFile
    try:
        made = msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise _explained(str(error), value, name, document) from error
    written = PolicyTestFile(made) if isinstance(made, list) else made
    source = PolicyTestSource(name, folder, written, document, isinstance(made, list))
    for index, test in enumerate(written.tests):
        _refuse_halves(source, source.path_of(index), test)
    return source


def _refuse_halves(source: PolicyTestSource, path: str, test: PolicyTest) -> None:
    """Raise an error for tests without an expectation, or with contradictory fields."""
    if not test.steps and test.expect is None:
        raise source.refusal(path, "test has neither `expect` nor `steps`")
    if not test.steps:
        _refuse_mixed_step(source, path, PolicyTestStep(pod=test.pod, group=test.group, expect=test.expect))
        return
    for name in ("pod", "group", "expect"):
        if getattr(test, name) is not None:
            raise source.refusal(f"{path}.{name}", f"move `{name}` into a step; a test with `steps` has none")
    if not any(step.expect for step in test.steps):
        raise source.refusal(path, "no step has `expect`")
    for index, step in enumerate(test.steps):
        _refuse_half_step(source, f"{path}.steps[{index}]", step)


def _refuse_half_step(source: PolicyTestSource, path: str, step: PolicyTestStep) -> None:
    _refuse_mixed_step(source, path, step)
    if step.expect is not None and step.pod is None and step.again is None and step.group is None:
        raise source.refusal(path, "step with `expect` needs `pod`, `group` or `again`")


def _refuse_mixed_step(source: PolicyTestSource, path: str, step: PolicyTestStep) -> None:
    """Raise an error for a step with several subjects, or with an expectation that its subject cannot have."""
    subjects = [name for name in ("pod", "group", "again") if getattr(step, name) is not None]
    if len(subjects) > 1:
        both = " and ".join(f"`{name}`" for name in subjects[:2])
        raise source.refusal(path, f"step has both {both}; use one of them")
    is_group = step.group is not None
    given = () if step.expect is None else (key for key in msgspec.to_builtins(step.expect) if key not in _OF_BOTH)
    wrong = next((key for key in given if (key in _OF_GROUPS) is not is_group), None)
    if wrong is not None:
        subject = "a pod group" if wrong in _OF_GROUPS else "a single pod"
        raise source.refusal(f"{path}.expect.{wrong}", f"`{wrong}` is an expectation about {subject}")


def _explained(text: str, value: Any, name: str, document: Document | None) -> UsageError:
    """Convert a decoder's message into an error with a position in the file."""
    match = _AT.fullmatch(text)
    path = ((match and match["path"]) or "").lstrip(".")
    what = match["what"] if match else text
    here, unknown = _schemas(path, is_list=isinstance(value, list)), _UNKNOWN.fullmatch(what)
    path = path.partition(_ANY)[0]
    if unknown is None:
        return _refusal(name, document, path, _plain(what, [name for one in here for name in one.get("enum", ())]))
    known = sorted({field for one in here for field in one.get("properties", {})})
    field = f"{path}.{unknown['name']}".lstrip(".")
    meant = did_you_mean(unknown["name"], known)
    problem = f"unknown field `{unknown['name']}`" + (f"; {meant}" if meant else f"; known fields: {', '.join(known)}")
    return _refusal(name, document, field, problem, at_key=True)


def _plain(what: str, values: Sequence[str]) -> str:
    """Rephrase a decoder's message in terms of YAML; if few values are valid, suggest the nearest valid value."""
    types = _TYPES.fullmatch(what)
    if types is not None:
        return f"expected {_type(types['expected'])}, got {_type(types['got'])}"
    value = _VALUE.fullmatch(what)
    if value is None or not values:
        return what[:1].lower() + what[1:]
    meant = did_you_mean(value["value"], values)
    said = f"expected one of {', '.join(values)}, got `{value['value']:.40}`"
    return f"{said}; {meant}" if meant else said


def _type(names: str) -> str:
    return " or ".join(_NAMES.get(name, name) for name in names.split(" | ") if name != "null" or names == "null")


def _schemas(path: str, *, is_list: bool) -> list[dict[str, Any]]:
    """Return the parts of the test files' JSON schema that apply at a path."""
    schema = json_schema()
    here = [one for one in schema["anyOf"] if (one.get("type") == "array") is is_list]
    for name in re.findall(r"[^.\[\]]+|\[", path):
        if not name.isdigit():
            here = [found for one in _resolved(here, schema) for found in _under(one, name)]
    return _resolved(here, schema)


def _under(schema: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the subschemas that a schema has for a field, or for list items."""
    if name in {"[", "..."}:
        return [one for key in ("items", "additionalProperties") if isinstance(one := schema.get(key), dict)]
    found = schema.get("properties", {}).get(name)
    return [] if found is None else [found]


def _resolved(found: Iterable[dict[str, Any]], schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for one in found:
        if "$ref" in one:
            made += _resolved([schema["$defs"][one["$ref"].rpartition("/")[2]]], schema)
        elif "anyOf" in one:
            made += _resolved(one["anyOf"], schema)
        else:
            made.append(one)
    return made


def _refusal(name: str, document: Document | None, path: str, problem: object, *, at_key: bool = False) -> UsageError:
    if document is None:
        return UsageError(f"{name}: {path}: {problem}" if path else f"{name}: {problem}")
    key = positions.key(document.source.root, path) if at_key else None
    place = positions.start(key) if key is not None else document.place(path)
    return UsageError(f"{name}:{place.line}:{place.column}: {problem}")
