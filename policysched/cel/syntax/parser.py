"""CEL parser: recursive descent with the structure of cel-go's generated parser, for the same error messages.

Source: cel-go v0.26 parser/parser.go, parser/gen/CEL.g4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from policysched.cel.issues import NOWHERE, Issues
from policysched.cel.syntax import literals, macros
from policysched.cel.syntax.recovery import (
    DEEPEST,
    Caller,
    GaveUpError,
    RecoveringReader,
    after,
    reading,
)
from policysched.cel.syntax.tokens import (
    BYTES,
    EOF,
    ESCAPED,
    FLOAT,
    IDENTIFIER,
    INT,
    STRING,
    UINT,
)
from policysched.cel.syntax.tree import (
    CallNode,
    CelNode,
    ConstantNode,
    Entry,
    ListOf,
    MapOf,
    MessageNode,
    Missing,
    Name,
    Select,
)

_RELATIONS: Final = {
    "<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_", "in": "@in",
}  # fmt: skip
_PRODUCTS: Final = {"*": "_*_", "/": "_/_", "%": "_%_"}
_SUMS: Final = {"+": "_+_", "-": "_-_"}
_RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_PRIMARY: Final = frozenset(
    {"[", "{", "(", ".", "-", "true", "false", "null", FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER}
)
_START: Final = _PRIMARY | {"!"}
_OPTIONAL: Final = _START | {"?"}
_FIELD: Final = frozenset({IDENTIFIER, ESCAPED})
_OPTIONAL_FIELD: Final = _FIELD | {"?"}
_CALCULATIONS: Final = frozenset(_PRODUCTS) | frozenset(_SUMS)
_CONSTANTS: Final = {"true": True, "false": False, "null": None}


_BEHIND_CALCULATION: Final = Caller(_CALCULATIONS, may_end=True)
_BEHIND_RELATION: Final = Caller(frozenset(_RELATIONS), may_end=True)
_BEHIND_MEMBER: Final = after(".", "[", may_end=True)
_END: Final = after(may_end=True)
_COMMA: Final = after(",", may_end=True)
_AT_END: Final = after(EOF)
_PARENTHESIS: Final = after(")")
_QUESTION: Final = after("?", may_end=True)
_COLON: Final = after(":")
_OR: Final = after("||", may_end=True)
_AND: Final = after("&&", may_end=True)
_BRACKET: Final = after("]")
_LIST_END: Final = after(",", "]")
_MAP_END: Final = after(",", "}")


def parse(text: str, issues: Issues) -> CelNode:
    """Parse a CEL expression and report its syntax errors."""
    parser = _Parser(text, issues)
    try:
        node = parser.start()
        if node.depth > DEEPEST:
            issues.report(NOWHERE, "max recursion depth exceeded")
    except GaveUpError:
        return Missing(0)
    return node


class _Parser(RecoveringReader):
    """Recursive-descent parser of CEL, with one method per rule of the grammar."""

    # Rules

    def start(self) -> CelNode:
        return self._rule("start", after(), self._start)

    def _start(self) -> CelNode:
        node = self._expression(_AT_END)
        self._match(EOF, _END)
        return node

    def _expression(self, caller: Caller) -> CelNode:
        return self._rule("expr", caller, self._conditional)

    def _conditional(self) -> CelNode:
        node = self._either(_QUESTION)
        if self._kind != "?":
            return node
        mark = self._match("?", after())
        then = self._either(_COLON)
        self._match(":", Caller(_START, may_end=False))
        other = self._expression(_END)
        return self._deeper(CallNode(mark.at, "_?_:_", [node, then, other]))

    def _either(self, caller: Caller) -> CelNode:
        return self._rule("or", caller, lambda: self._logical("||", lambda: self._rule("and", _OR, self._both)))

    def _both(self) -> CelNode:
        return self._logical("&&", lambda: self._rule("relation", _AND, lambda: self._relation(1)))

    def _logical(self, sign: str, part: Callable[[], CelNode]) -> CelNode:
        terms, marks = [part()], list[int]()
        while self._kind == sign:
            marks.append(self._match(sign, after()).at)
            terms.append(part())
        return _balanced(f"_{sign}_", terms, marks) if marks else terms[0]

    def _relation(self, weakest: int) -> CelNode:
        node = self._rule("calc", _BEHIND_RELATION, lambda: self._calculation(1))
        entered = 0
        while self._kind in _RELATIONS and weakest <= 1:
            self._enter("relation")
            entered += 1
            mark = self._take()
            right = self._rule("relation", _BEHIND_RELATION, lambda: self._relation(2))
            node = self._deeper(CallNode(mark.at, _RELATIONS[mark.text], [node, right]))
        self._leave("relation", entered)
        return node

    def _calculation(self, weakest: int) -> CelNode:
        node = self._rule("unary", _BEHIND_CALCULATION, self._unary)
        entered = 0
        while self._kind in _CALCULATIONS:
            strength = 2 if self._kind in _PRODUCTS else 1
            if strength < weakest:
                break
            self._enter("calc")
            entered += 1
            mark = self._take()
            right = self._rule("calc", _BEHIND_CALCULATION, partial(self._calculation, strength + 1))
            node = self._deeper(CallNode(mark.at, (_PRODUCTS | _SUMS)[mark.text], [node, right]))
        self._leave("calc", entered)
        return node

    def _unary(self) -> CelNode:
        self._sync(_START)
        sign = self._kind
        if sign == "-":
            follower = self._peek()
            if follower in {INT, FLOAT}:
                sign = ""
            elif follower not in _PRIMARY:
                raise self._no_alternative("unary")
        if sign not in {"!", "-"}:
            return self._member_rule()
        first, number = self._match(sign, after()), 1
        self._sync_in_loop(_PRIMARY | {sign})
        while self._kind == sign:
            if sign == "-" and self._peek() not in _PRIMARY:
                raise self._no_alternative("unary")
            self._match(sign, after())
            number += 1
            self._sync_in_loop(_PRIMARY | {sign})
        node = self._member_rule()
        if number % 2 == 0:
            return node
        return CallNode(first.at, "!_" if sign == "!" else "-_", [node], depth=node.depth)

    def _member_rule(self) -> CelNode:
        return self._rule("member", _END, self._member)

    def _member(self) -> CelNode:
        node = self._rule("primary", _BEHIND_MEMBER, self._primary)
        entered = 0
        while self._kind in {".", "["}:
            self._enter("member")
            entered += 1
            with reading(partial(_same, node)):
                node = self._deeper(self._index(node) if self._kind == "[" else self._selection(node))
        self._leave("member", entered)
        return node

    def _index(self, target: CelNode) -> CelNode:
        mark = self._match("[", after())
        function = "_[_]"
        with reading(lambda: CallNode(mark.at, function, [target, Missing(mark.at)])):
            self._sync(_OPTIONAL)
        if self._kind == "?":
            self._take()
            function = "_[?_]"
        node = CallNode(mark.at, function, [target, Missing(mark.at)])
        with reading(lambda: node):
            node.arguments[1] = self._expression(_BRACKET)
            self._match("]", _BEHIND_MEMBER)
        return node

    def _selection(self, target: CelNode) -> CelNode:
        follower = self._peek()
        if follower not in _OPTIONAL_FIELD:
            raise self._no_alternative("selection")
        mark = self._match(".", after())
        if follower == IDENTIFIER and self._peek() == "(":
            return self._method(target)
        optional = self._kind == "?"
        if optional:
            self._take()
        at, name = self._rule_name(_BEHIND_MEMBER)
        if not optional:
            return Select(mark.at, target, name)
        return CallNode(mark.at, "_?._", [target, ConstantNode(at, name)])

    def _method(self, target: CelNode) -> CelNode:
        name = self._take().text
        return self._call(name, target, _BEHIND_MEMBER)

    def _call(self, name: str, target: CelNode | None, behind: Caller) -> CelNode:
        mark = self._match("(", after())
        arguments: list[CelNode] = []
        with reading(lambda: self._called(mark.at, name, target, arguments)):
            self._sync(_START | {")"})
            if self._kind in _START:
                self._rule("list", _PARENTHESIS, lambda: self._expressions(arguments))
            self._match(")", behind)
        return self._called(mark.at, name, target, arguments)

    def _expressions(self, found: list[CelNode]) -> CelNode:
        found.append(self._expression(_COMMA))
        while self._kind == ",":
            self._match(",", after())
            found.append(self._expression(_COMMA))
        return found[0]

    def _rule_name(self, caller: Caller) -> tuple[int, str]:
        """Read the name of a field; Kubernetes does not allow escaped names."""
        place = self._tokens[self._next].at
        node = self._rule("name", caller, self._field_name)
        if not isinstance(node, Name):
            self._issues.report(place, "unsupported ident kind")
        return place, node.name if isinstance(node, Name) else ""

    def _field_name(self) -> CelNode:
        self._sync(_FIELD)
        token = self._take()
        if token.kind == ESCAPED:
            self._issues.report(token.at, "unsupported syntax: '`'")
            return Name(token.at, token.text[1:-1])
        return Name(token.at, token.text)

    # The begin of an expression

    def _primary(self) -> CelNode:
        self._sync(_PRIMARY)
        if self._kind == "(":
            return self._nested()
        if self._kind == "[":
            return self._list()
        if self._kind == "{":
            return self._map()
        if self._kind in {".", IDENTIFIER}:
            return self._named()
        if self._kind == "-" and self._peek() not in {INT, FLOAT}:
            raise self._no_alternative("primary")
        return self._rule("literal", _END, self._literal)

    def _nested(self) -> CelNode:
        self._match("(", after())
        node = self._expression(_PARENTHESIS)
        with reading(lambda: node):
            self._match(")", _END)
        return node

    def _named(self) -> CelNode:
        dotted = self._kind == "."
        if dotted and self._peek() != IDENTIFIER:
            raise self._no_alternative("named")
        place = self._next + dotted + 1
        while self._tokens[place].kind == "." and self._tokens[place + 1].kind == IDENTIFIER:
            place += 2
        first = self._take()
        token = self._take() if dotted else first
        prefix = "." if dotted else ""
        if self._tokens[place].kind == "{":
            return self._message(prefix + token.text)
        if self._kind == "(":
            node = self._call(prefix + token.text, None, _END)
            return self._reserved(first.at, token.text) if token.text in _RESERVED else node
        if token.text in _RESERVED:
            return self._reserved(first.at, token.text)
        return Name(token.at, prefix + token.text)

    def _reserved(self, at: int, word: str) -> CelNode:
        self._issues.report(at, f"reserved identifier: {word}")
        return Missing(at)

    def _message(self, name: str) -> CelNode:
        while self._kind == ".":
            self._take()
            name += "." + self._take().text
        mark = self._match("{", after())
        self._sync(_OPTIONAL_FIELD | {",", "}"})
        entries: list[Entry] = []
        if self._kind in _OPTIONAL_FIELD:
            self._rule("fields", _MAP_END, lambda: self._entries(entries, self._field_key, _OPTIONAL_FIELD))
        self._close("}")
        return MessageNode(
            mark.at, name, entries, depth=_deepest(children for one in entries for children in [one.value])
        )

    def _field_key(self) -> tuple[bool, CelNode | str]:
        optional = False

        def read() -> CelNode:
            nonlocal optional
            self._sync(_OPTIONAL_FIELD)
            optional = self._kind == "?"
            if optional:
                self._take()
            _, name = self._rule_name(_END)
            return Name(0, name)

        node = self._rule("field", _COLON, read)
        return optional, node.name if isinstance(node, Name) else ""

    def _map_key(self) -> tuple[bool, CelNode | str]:
        return self._optional_expression(_COLON)

    def _optional_expression(self, caller: Caller) -> tuple[bool, CelNode]:
        optional = False

        def read() -> CelNode:
            nonlocal optional
            self._sync(_OPTIONAL)
            optional = self._kind == "?"
            if optional:
                self._take()
            return self._expression(_END)

        node = self._rule("optional", caller, read)
        return optional, node

    def _entries(
        self, found: list[Entry], key: Callable[[], tuple[bool, CelNode | str]], begins: frozenset[str]
    ) -> CelNode:
        self._entry(found, key)
        while self._kind == "," and self._peek() in begins:
            self._match(",", after())
            self._entry(found, key)
        return found[0].value

    def _entry(self, found: list[Entry], key: Callable[[], tuple[bool, CelNode | str]]) -> None:
        optional, name = key()
        mark = self._match(":", Caller(_START, may_end=False))
        found.append(Entry(mark.at, name, self._expression(_COMMA), optional))

    def _list(self) -> CelNode:
        mark = self._match("[", after())
        self._sync(_OPTIONAL | {",", "]"})
        elements: list[tuple[bool, CelNode]] = []
        if self._kind in _OPTIONAL:
            self._rule("elements", _LIST_END, lambda: self._elements(elements))
        self._close("]")
        optional = frozenset(place for place, (is_optional, _) in enumerate(elements) if is_optional)
        nodes = [node for _, node in elements]
        return ListOf(mark.at, nodes, optional, depth=_deepest(nodes))

    def _elements(self, found: list[tuple[bool, CelNode]]) -> CelNode:
        found.append(self._optional_expression(_COMMA))
        while self._kind == "," and self._peek() in _OPTIONAL:
            self._match(",", after())
            found.append(self._optional_expression(_COMMA))
        return found[0][1]

    def _map(self) -> CelNode:
        mark = self._match("{", after())
        self._sync(_OPTIONAL | {",", "}"})
        entries: list[Entry] = []
        if self._kind in _OPTIONAL:
            self._rule("entries", _MAP_END, lambda: self._entries(entries, self._map_key, _OPTIONAL))
        self._close("}")
        made = MapOf(mark.at, entries)
        made.depth = _deepest(part for one in entries for part in (one.key, one.value) if isinstance(part, CelNode))
        return made

    def _close(self, bracket: str) -> None:
        self._sync(frozenset({",", bracket}))
        if self._kind == ",":
            self._take()
        self._match(bracket, _END)

    def _literal(self) -> CelNode:
        self._sync(_PRIMARY - {"[", "{", "(", ".", IDENTIFIER})
        token = self._take()
        try:
            if token.kind == "-":
                number = self._take()
                of = literals.int_of if number.kind == INT else _signed_double
                return ConstantNode(token.at, of(number.text, "-"))
            return ConstantNode(token.at, _LITERALS[token.kind](token.text))
        except literals.LiteralError as error:
            self._issues.report(token.at, str(error))
            return Missing(token.at)

    # Making nodes

    def _called(self, at: int, name: str, target: CelNode | None, arguments: list[CelNode]) -> CelNode:
        try:
            node = macros.expand(at, name, target, arguments)
        except macros.MacroError as error:
            self._issues.report(error.at, str(error))
            node = Missing(error.at)
        if node is None:
            node = CallNode(at, name, arguments, target)
        node.depth = _deepest([*arguments, *([target] if target else [])])
        return node

    def _deeper(self, node: CelNode) -> CelNode:
        if not isinstance(node, CallNode | Select) or node.depth:
            node.depth += 1
            return node
        below = (
            [node.operand] if isinstance(node, Select) else [*node.arguments, *([node.target] if node.target else [])]
        )
        node.depth = 1 + _deepest(below)
        return node


def _same(node: CelNode) -> CelNode:
    return node


def _signed_double(text: str, sign: str) -> float:
    return literals.double_of(sign + text)


_LITERALS: Final[dict[str, Callable[[str], object]]] = {
    INT: literals.int_of,
    UINT: literals.uint_of,
    FLOAT: literals.double_of,
    STRING: literals.string_of,
    BYTES: literals.bytes_of,
    **dict.fromkeys(_CONSTANTS, _CONSTANTS.__getitem__),
}


def _deepest(nodes: Iterable[CelNode]) -> int:
    return max((one.depth for one in nodes), default=0)


def _balanced(function: str, terms: list[CelNode], marks: list[int]) -> CelNode:
    """Return a balanced tree of the terms of a chain of && or ||, so that long chains are not deep."""

    def part(low: int, high: int) -> CelNode:
        middle = (low + high + 1) // 2
        left = terms[middle] if middle == low else part(low, middle - 1)
        right = terms[middle + 1] if middle == high else part(middle + 1, high)
        return CallNode(marks[middle], function, [left, right], depth=max(left.depth, right.depth))

    return part(0, len(marks) - 1)
