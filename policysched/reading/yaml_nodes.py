"""Reads YAML as Kubernetes does: as values, and as YAML nodes with source positions.

Plain scalars are resolved by Kubernetes' rules: PyYAML's dates and base-60 numbers (`22:00`) are texts. Invalid YAML
raises a UsageError with line and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from policysched.errors import UsageError
from policysched.reading.bounded_yaml import RAISED, BoundsError, JsonConstructor, Sizes, shallow_events

LINE_END: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
LONG_NUMBER: Final = "a number has more than 4300 digits"
_MOST_BITS: Final = 14_284
"""Largest size of a whole number, slightly below 4,300 decimal digits; more is an error. Units: bits."""
TRAP_HELP: Final = 'quote a text that starts with ", [ or ! or contains ": " or " #", or write it as a block scalar'
SINGLE_HELP: Final = "put the whole text in '…' and write strings in it as \"ssd\""
FLOW_HELP: Final = "quote a text with brackets or commas inside { }"
INDENT_HELP: Final = "check the indentation of this line"
DROPPED: Final = "YAML drops the ! before a value; quote the whole text, or write `not`"
QUESTION: Final = "kubectl cannot read an unquoted text with ? inside { } or [ ]; quote it"
_PLAIN: Final = re.compile(r":\s++[^\s\"'\[{]")
_QUOTED: Final = re.compile(r"""\s*(?:-\s+)*(?:[\w.-]+:\s+)?["\[]""")
_SINGLE: Final = re.compile(r"\s*(?:-\s+)*(?:[\w.-]+:\s+)?'")
_STRING: Final = re.compile(r"[\"']")
_COLONS: Final = re.compile(r"\s*(?:-\s.*|[\w.-]+:\s.*):\s")
_KEY: Final = re.compile(r"\s*(?P<key>(?:-\s+)*[\w.-]+:(?:\s|\Z))")
_UNKNOWN_TAG: Final = "could not determine a constructor for the tag"
_NULL: Final = re.compile(r"(?:~|null|Null|NULL|)\Z")
_BOOL: Final = re.compile(r"(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)\Z")
_INT: Final = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_MERGE: Final = re.compile(r"<<\Z")
TYPED: Final = re.compile("|".join(f"(?:{one.pattern})" for one in (_NULL, _BOOL, _INT, _FLOAT, _MERGE)))
"""Pattern of unquoted scalars that YAML does not read as text (numbers, booleans, …)."""


class PlainLoader(JsonConstructor, yaml.CSafeLoader):
    """YAML loader with Kubernetes' rules for unquoted scalars."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}  # type: ignore[misc]  # the stubs call it an instance's

    def construct_whole_number(self, node: ScalarNode) -> int:
        """Construct a whole number; reject a number with more digits than Python prints."""
        number = self.construct_yaml_int(node)
        if number.bit_length() > _MOST_BITS:
            raise ValueError("too many digits")
        return number


PlainLoader.add_constructor("tag:yaml.org,2002:int", PlainLoader.construct_whole_number)

for _tag, _pattern, _first in (
    ("bool", _BOOL, "yYnNtTfFoO"),
    ("null", _NULL, ["~", "n", "N", ""]),
    ("int", _INT, "-+0123456789"),
    ("float", _FLOAT, "-+0123456789."),
    ("merge", _MERGE, "<"),
):
    PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, list(_first))


def read_yaml(text: str, file: str) -> list[tuple[Any, Node]]:
    """Return the values of the documents in a YAML text, each with its root node; skip empty documents.

    Raises:
        UsageError: the text is not valid YAML; the message has file, line and column.
    """
    try:
        return list(_documents(text, file))
    except BoundsError as error:
        raise UsageError(f"{_place(file, error.problem_mark)}: {error.problem}") from error
    except yaml.MarkedYAMLError as error:
        raise _located(error, text, file) from error
    except yaml.YAMLError as error:
        reason = getattr(error, "reason", "unreadable")
        raise UsageError(f"{file}: not a text file: {reason}") from error
    except ValueError as error:
        problem = LONG_NUMBER if "digits" in str(error) else error
        raise UsageError(f"{file}: not valid YAML: {problem}") from error
    except RAISED as error:
        raise UsageError(f"{file}: not valid YAML: value does not match its tag") from error


def reads_as(written: str, *, flow: bool) -> str | None:
    """Return the string that YAML reads from unquoted text; None if it reads a number, a mapping or anything else.

    Args:
        written: The characters.
        flow: Whether the characters are inside `{}` or `[]`.
    """
    try:
        around = f"[{written}]" if flow else f"- {written}"
        _check_events(around, "")
        node = yaml.compose(around, Loader=PlainLoader)
    except (yaml.YAMLError, UsageError):
        return None
    if not isinstance(node, SequenceNode) or len(node.value) != 1:
        return None
    [item] = node.value
    return (
        item.value if isinstance(item, ScalarNode) and item.tag == "tag:yaml.org,2002:str" and not item.style else None
    )


def _documents(text: str, file: str) -> Iterator[tuple[Any, Node]]:
    _check_events(text, file)
    loader = PlainLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None  # noqa: S101 - check_node found a node
            Sizes(partial(_values, file)).size(node)
            made = loader.construct_document(node)
            if made is not None:
                yield made, node
    finally:
        loader.dispose()


def _check_events(text: str, file: str) -> None:
    """Reject deep nesting before recursive steps such as composing, and scalars that kubectl cannot read."""
    flows: list[bool] = []
    for event in shallow_events(text, PlainLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            flows.append(bool(event.flow_style))
        elif isinstance(event, yaml.CollectionEndEvent):
            flows.pop()
        if flows and flows[-1] and isinstance(event, yaml.ScalarEvent) and not event.style and "?" in event.value:
            raise _refusal(event, file, QUESTION)
        if isinstance(event, yaml.ScalarEvent) and event.tag == "!":
            raise _refusal(event, file, DROPPED)


def _refusal(at: Node | yaml.Event, file: str, what: str) -> UsageError:
    return UsageError(f"{_place(file, at.start_mark)}: {what}")


def _place(file: str, mark: Any) -> str:
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return f"{file}:{line}:{column}"


def _values(file: str, node: Node) -> Iterator[Node]:
    """Yield the child nodes of a YAML node; reject mapping keys that a JSON object cannot have."""
    if isinstance(node, SequenceNode):
        yield from node.value
    elif isinstance(node, MappingNode):
        _check_keys(file, node)
        yield from (value for _, value in node.value)


def _check_keys(file: str, node: MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, ScalarNode):
            raise _refusal(key, file, "key is not a text")
        if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
            raise _refusal(key, file, f'duplicate key "{key.value}"')
        seen.add(key.value)


def _located(error: yaml.MarkedYAMLError, text: str, file: str) -> UsageError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    problem = (error.problem or error.context or "unreadable").replace(_UNKNOWN_TAG, "unknown tag")
    lines = text.split("\n")
    near = lines[line] if line < len(lines) else ""
    help_text = _help(near, column, problem)
    return UsageError(f"{file}:{line + 1}:{column + 1}: not valid YAML: {problem}{help_text}")


def _has_key_in_flow(line: str) -> bool:
    """Return whether a YAML line has, inside `{…}`, an unquoted value with a `[`."""
    found = _PLAIN.search(line, line.find("{") + 1) if "{" in line else None
    return found is not None and "[" in line[found.end() :]


def _help(line: str, column: int, problem: str) -> str:
    """Return how to fix a line that YAML misreads or that is indented wrongly; empty if the cause is unknown."""
    if problem == "found character that cannot start any token" and line[column : column + 1] == "\t":
        return "; YAML is indented with spaces, not tabs"
    if problem == "did not find expected ',' or '}'" and _has_key_in_flow(line):
        return f"; {FLOW_HELP}"
    if problem == "did not find expected ',' or ']'" and "[" in line[:column] and _STRING.search(line):
        return f"; inside [ ], {SINGLE_HELP}"
    if problem.startswith(("did not find expected key", "did not find expected '-'")) and _SINGLE.match(line):
        return f"; {SINGLE_HELP}"
    misread = (
        (problem.startswith("mapping values") and _COLONS.match(line))
        or (problem.startswith(("did not find expected key", "did not find expected '-'")) and _QUOTED.match(line))
        or problem.startswith(("unknown tag", "did not find expected whitespace", "did not find expected comment"))
    )
    if _is_indented_wrong(line, column, problem, is_misread=bool(misread)):
        return f"; {INDENT_HELP}"
    return f"; {TRAP_HELP}" if misread else ""


def _is_indented_wrong(line: str, column: int, problem: str, *, is_misread: bool) -> bool:
    """Return whether the likely cause of a YAML error is the indentation of the line."""
    key = _KEY.match(line)
    if key is None:
        return False
    if problem.startswith("mapping values"):
        return not is_misread
    return column == key.start("key") and problem.startswith(("did not find expected key", "did not find expected '-'"))
