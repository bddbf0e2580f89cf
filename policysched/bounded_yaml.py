"""`load` and `compose`: YAML of others, its depth and what its aliases repeat bounded before anything is made of it.

PyYAML bounds neither: libyaml's composer ends the process on some ten thousand brackets, and merges (`<<`) of some
hundred characters take hours to construct. Whatever is wrong with a text becomes a `yaml.YAMLError`. What is made of it
are values of JSON (`JsonConstructor`).
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
"""How many values aliases may add to those that are written: no small text takes long or fills the memory."""
DEPTH_OF_LIBYAML: Final = "exceeded maximum nesting depth"
"""What libyaml says from 0.2.6 on of more than a thousand levels, which it meets in brackets before it tells of any."""
RAISED: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What PyYAML's constructors raise of scalars that are not what their tags or shapes say, besides its own errors."""


class BoundsError(yaml.MarkedYAMLError):
    """A document is nested too deeply, or larger than what is written."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem=problem, problem_mark=mark)


class TooDeepError(BoundsError):
    """A document is nested too deeply, or without an end."""


_TAGS: Final = "tag:yaml.org,2002:"


class JsonConstructor(SafeConstructor):
    """Makes values of JSON alone, as kubectl does; others are refused where they stand.

    Keys and dates stay the texts that they are written as, and so do numbers that are too large for one.
    """

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Make an object; its keys stay texts."""
        self.flatten_mapping(node)
        return {_key(key): self.construct_object(value, deep=deep) for key, value in node.value}

    def construct_date(self, node: ScalarNode) -> str:
        """Make a text of a date."""
        self.construct_yaml_timestamp(node)
        return str(node.value)

    def construct_number(self, node: ScalarNode) -> float | str:
        """Make a number, and a text of one that is too large."""
        number = self.construct_yaml_float(node)
        if isfinite(number):
            return number
        if not any(map(str.isdigit, node.value)):
            raise _no_json(node)
        return str(node.value)

    def refuse(self, node: Node) -> Any:
        """Refuse what JSON has no value for."""
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
    return ConstructorError(None, None, f"value is not valid in JSON: !!{node.tag.removeprefix(_TAGS)}", node.start_mark)


class _Loader(JsonConstructor, yaml.SafeLoader):
    """Composes no deeper than MAX_DEPTH."""

    _depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Make the nodes of a value, and refuse one inside of too many others."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs do not say
        if self._depth >= MAX_DEPTH and isinstance(event, yaml.CollectionStartEvent):
            raise _too_deep(event.start_mark)
        self._depth += 1
        node: Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def load(text: str | bytes) -> Any:
    """Read the one document of a text.

    Raises:
        yaml.YAMLError: it cannot be read, or is not bounded.
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
    """Make the nodes of the one document of a text; None where there is none.

    Raises:
        yaml.YAMLError: it cannot be read, or is not bounded.
    """
    for _ in shallow_events(text, yaml.CSafeLoader):
        pass
    node: Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    if node is not None:
        Sizes().size(node)
    return node


def shallow_events(text: str | bytes, loader: Any) -> Iterator[yaml.Event]:
    """Give the events of a text; its nesting is refused before anything recursive, such as composing, meets it.

    Raises:
        TooDeepError: it is nested too deeply.
        yaml.YAMLError: it cannot be read.
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
    """Counts the values of a document before it is constructed.

    Args:
        children: Gives the nodes of a node that count.
    """

    def __init__(self, children: Callable[[Node], Iterable[Node]] = _children) -> None:
        self._children = children
        self._sizes: dict[int, int] = {}
        self._above: set[int] = set()

    def size(self, node: Node) -> int:
        """Count the values of a node with aliases followed.

        Raises:
            BoundsError: they are too many, or without an end.
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
