"""`load` and `compose`: read untrusted YAML with limits on nesting depth and on values repeated by aliases.

PyYAML has no such limits: 10,000 brackets crash libyaml, and merges (`<<`) of a few hundred characters take hours.
Invalid text raises `yaml.YAMLError`. The result has only values of JSON (`JsonConstructor`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any, ClassVar, Final

import yaml
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_DEPTH: Final = 200
MAX_REPEATED: Final = 500_000
"""Largest number of values that aliases may add to a YAML document; a document with more is rejected."""
DEPTH_OF_LIBYAML: Final = "exceeded maximum nesting depth"
"""Error message of libyaml 0.2.6 and later for more than 1,000 nested levels."""
RAISED: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions that PyYAML's constructors raise for invalid scalars, besides PyYAML's own errors."""


class BoundsError(yaml.MarkedYAMLError):
    """Error: a document is nested too deeply, or aliases make it too large."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem=problem, problem_mark=mark)


class TooDeepError(BoundsError):
    """Error: a document is nested too deeply, or endlessly by an alias to itself."""


_TAGS: Final = "tag:yaml.org,2002:"


class JsonConstructor(SafeConstructor):
    """Constructs only values that JSON has, as kubectl does; other YAML values raise an error with their position.

    Keys, dates and numbers that are too large stay texts.
    """

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct an object from a YAML mapping; keys stay texts."""
        self.flatten_mapping(node)
        return {_key(key): self.construct_object(value, deep=deep) for key, value in node.value}

    def construct_date(self, node: ScalarNode) -> str:
        """Construct a text from a YAML date."""
        self.construct_yaml_timestamp(node)
        return str(node.value)

    def construct_number(self, node: ScalarNode) -> float | str:
        """Construct a number from a YAML scalar; construct a text if the number is too large."""
        number = self.construct_yaml_float(node)
        if isfinite(number):
            return number
        if not any(map(str.isdigit, node.value)):
            raise _no_json(node)
        return str(node.value)

    def refuse(self, node: Node) -> Any:
        """Reject a YAML value that JSON does not have."""
        raise _no_json(node)

    yaml_constructors: ClassVar[dict[Any, Any]] = (
        SafeConstructor.yaml_constructors
        | {f"{_TAGS}timestamp": construct_date, f"{_TAGS}float": construct_number}
        | dict.fromkeys((f"{_TAGS}binary", f"{_TAGS}omap", f"{_TAGS}pairs", f"{_TAGS}set"), refuse)
    )


def _key(node: Node) -> str:
    if not isinstance(node, ScalarNode):
        raise ConstructorError(None, None, "key is not a text", node.start_mark)
    return str(node.value)


def _no_json(node: Node) -> ConstructorError:
    return ConstructorError(
        None, None, f"value is not valid in JSON: !!{node.tag.removeprefix(_TAGS)}", node.start_mark
    )


class _Loader(JsonConstructor, yaml.SafeLoader):
    """YAML loader that rejects documents nested deeper than MAX_DEPTH."""

    _depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Return the YAML node tree of a value; reject too deep nesting."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs do not say
        if self._depth >= MAX_DEPTH and isinstance(event, yaml.CollectionStartEvent):
            raise _too_deep(event.start_mark)
        self._depth += 1
        node: Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def load(text: str | bytes) -> Any:
    """Return the value of a YAML text with a single document.

    Raises:
        yaml.YAMLError: the text is invalid or exceeds a limit.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        Sizes().size(node)
        return loader.construct_document(node)
    except RAISED as error:
        raise yaml.YAMLError(f"invalid value: {error!r:.200}") from error
    finally:
        loader.dispose()


def compose(text: str | bytes) -> Node | None:
    """Return the YAML node tree of a text with a single document; None if there is no document.

    Raises:
        yaml.YAMLError: the text is invalid or exceeds a limit.
    """
    for _ in shallow_events(text, yaml.CSafeLoader):
        pass
    node: Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    if node is not None:
        Sizes().size(node)
    return node


def shallow_events(text: str | bytes, loader: Any) -> Iterator[yaml.Event]:
    """Yield the YAML events of a text; reject too deep nesting before any recursive processing.

    Raises:
        TooDeepError: the text is nested too deeply.
        yaml.YAMLError: the text is invalid.
    """
    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MAX_DEPTH:
                raise _too_deep(event.start_mark)
            yield event
    except yaml.MarkedYAMLError as error:
        if error.problem == DEPTH_OF_LIBYAML:
            raise _too_deep(error.problem_mark) from error
        raise


def _too_deep(mark: Any) -> TooDeepError:
    return TooDeepError(f"nested deeper than {MAX_DEPTH} levels", mark)


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, SequenceNode):
        yield from node.value
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            yield key
            yield value


class Sizes:
    """Counts the values of a YAML document before they are constructed, as often as aliases repeat them.

    Args:
        children: Returns the child nodes to count.
    """

    def __init__(self, children: Callable[[Node], Iterable[Node]] = _children) -> None:
        self._children = children
        self._sizes: dict[int, int] = {}
        self._above: set[int] = set()

    def size(self, node: Node) -> int:
        """Return the number of values in a YAML node; a value is counted again at each alias that repeats it.

        Raises:
            BoundsError: the values are too many or endless.
        """
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in self._above:
            raise TooDeepError("anchor refers to itself", node.start_mark)
        self._above.add(id(node))
        size = 1 + sum(self.size(child) for child in self._children(node))
        self._above.discard(id(node))
        self._sizes[id(node)] = size
        if size > len(self._sizes) + MAX_REPEATED:
            raise BoundsError(f"aliases add more than {MAX_REPEATED} values", node.start_mark)
        return size
