"""The parser: recursive descent in the shape of cel-go's generated one, so that its error messages come out the same.

A generated ANTLR parser looks before each decision whether the next token fits (`_sync`), drops or makes up a single
token where that mends a text, and else leaves rules until a token follows that one of its callers waits for. A rule is
called with the tokens that its caller waits for; their stack is what recovery stops at.

Source: cel-go v0.26 parser/parser.go, parser/gen/CEL.g4; the ANTLR runtime's DefaultErrorStrategy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple

from policysched.cel.issues import NOWHERE, Issues
from policysched.cel.syntax import literals, macros
from policysched.cel.syntax.tokens import (
    BYTES,
    EOF,
    ESCAPED,
    FLOAT,
    IDENTIFIER,
    INT,
    ORDER,
    STRING,
    UINT,
    Token,
    tokens,
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

_DEEPEST: Final = 250
_MOST_RECOVERIES: Final = 30
_MOST_SKIPPED: Final = 256
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
_WORD_AFTER_DOT: Final = re.compile(r"no viable alternative at input '.(true|false|null)'")
_CONSTANTS: Final = {"true": True, "false": False, "null": None}


class _MismatchError(Exception):
    """A rule cannot go on; the state says where in the rule."""

    def __init__(self, message: str, state: object) -> None:
        super().__init__(message)
        self.message, self.state = message, state
        self.partial: CelNode | None = None
        """What was read of the rule before."""


class _GaveUpError(Exception):
    """The text is not read any further."""


class _Caller(NamedTuple):
    """What the caller of a rule waits for, and whether it may end there itself."""

    tokens: frozenset[str]
    may_end: bool


def _after(*kinds: str, may_end: bool = False) -> _Caller:
    return _Caller(frozenset(kinds), may_end)


_BEHIND_CALCULATION: Final = _Caller(_CALCULATIONS, may_end=True)
_BEHIND_RELATION: Final = _Caller(frozenset(_RELATIONS), may_end=True)
_BEHIND_MEMBER: Final = _after(".", "[", may_end=True)
_END: Final = _after(may_end=True)
_COMMA: Final = _after(",", may_end=True)
_AT_END: Final = _after(EOF)
_PARENTHESIS: Final = _after(")")
_QUESTION: Final = _after("?", may_end=True)
_COLON: Final = _after(":")
_OR: Final = _after("||", may_end=True)
_AND: Final = _after("&&", may_end=True)
_BRACKET: Final = _after("]")
_LIST_END: Final = _after(",", "]")
_MAP_END: Final = _after(",", "}")


def parse(text: str, issues: Issues) -> CelNode:
    """Read a text; what is wrong with it is reported."""
    parser = _Parser(text, issues)
    try:
        node = parser.start()
        if node.depth > _DEEPEST:
            issues.report(NOWHERE, "max recursion depth exceeded")
    except _GaveUpError:
        return Missing(0)
    return node


class _Parser:
    """The state of one run: the next token, the callers, and what recovery remembers."""

    def __init__(self, text: str, issues: Issues) -> None:
        self._text, self._issues = text, issues
        self._tokens, self._left_out = tokens(text, issues)
        self._next = 0
        self._kind = self._tokens[0].kind
        self._callers: list[_Caller] = []
        self._recovering = False
        self._recoveries = 0
        self._failed_at = -1
        self._failed_in: set[object] = set()
        self._depths: dict[str, int] = {}

    # Rules

    def start(self) -> CelNode:
        return self._rule("start", _after(), self._start)

    def _start(self) -> CelNode:
        node = self._expression(_AT_END)
        self._match(EOF, _END)
        return node

    def _expression(self, caller: _Caller) -> CelNode:
        return self._rule("expr", caller, self._conditional)

    def _conditional(self) -> CelNode:
        node = self._either(_QUESTION)
        if self._kind != "?":
            return node
        mark = self._match("?", _after())
        then = self._either(_COLON)
        self._match(":", _Caller(_START, may_end=False))
        other = self._expression(_END)
        return self._deeper(CallNode(mark.at, "_?_:_", [node, then, other]))

    def _either(self, caller: _Caller) -> CelNode:
        return self._rule("or", caller, lambda: self._logical("||", lambda: self._rule("and", _OR, self._both)))

    def _both(self) -> CelNode:
        return self._logical("&&", lambda: self._rule("relation", _AND, lambda: self._relation(1)))

    def _logical(self, sign: str, part: Callable[[], CelNode]) -> CelNode:
        terms, marks = [part()], list[int]()
        while self._kind == sign:
            marks.append(self._match(sign, _after()).at)
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
        first, number = self._match(sign, _after()), 1
        self._sync_in_loop(_PRIMARY | {sign})
        while self._kind == sign:
            if sign == "-" and self._peek() not in _PRIMARY:
                raise self._no_alternative("unary")
            self._match(sign, _after())
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
            with _reading(partial(_same, node)):
                node = self._deeper(self._index(node) if self._kind == "[" else self._selection(node))
        self._leave("member", entered)
        return node

    def _index(self, target: CelNode) -> CelNode:
        mark = self._match("[", _after())
        function = "_[_]"
        with _reading(lambda: CallNode(mark.at, function, [target, Missing(mark.at)])):
            self._sync(_OPTIONAL)
        if self._kind == "?":
            self._take()
            function = "_[?_]"
        node = CallNode(mark.at, function, [target, Missing(mark.at)])
        with _reading(lambda: node):
            node.arguments[1] = self._expression(_BRACKET)
            self._match("]", _BEHIND_MEMBER)
        return node

    def _selection(self, target: CelNode) -> CelNode:
        follower = self._peek()
        if follower not in _OPTIONAL_FIELD:
            raise self._no_alternative("selection")
        mark = self._match(".", _after())
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

    def _call(self, name: str, target: CelNode | None, behind: _Caller) -> CelNode:
        mark = self._match("(", _after())
        arguments: list[CelNode] = []
        with _reading(lambda: self._called(mark.at, name, target, arguments)):
            self._sync(_START | {")"})
            if self._kind in _START:
                self._rule("list", _PARENTHESIS, lambda: self._expressions(arguments))
            self._match(")", behind)
        return self._called(mark.at, name, target, arguments)

    def _expressions(self, found: list[CelNode]) -> CelNode:
        found.append(self._expression(_COMMA))
        while self._kind == ",":
            self._match(",", _after())
            found.append(self._expression(_COMMA))
        return found[0]

    def _rule_name(self, caller: _Caller) -> tuple[int, str]:
        """Read a field's name, which may be escaped, though Kubernetes does not take escaped ones."""
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

    # What an expression begins with

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
        self._match("(", _after())
        node = self._expression(_PARENTHESIS)
        with _reading(lambda: node):
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
        mark = self._match("{", _after())
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

    def _optional_expression(self, caller: _Caller) -> tuple[bool, CelNode]:
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
            self._match(",", _after())
            self._entry(found, key)
        return found[0].value

    def _entry(self, found: list[Entry], key: Callable[[], tuple[bool, CelNode | str]]) -> None:
        optional, name = key()
        mark = self._match(":", _Caller(_START, may_end=False))
        found.append(Entry(mark.at, name, self._expression(_COMMA), optional))

    def _list(self) -> CelNode:
        mark = self._match("[", _after())
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
            self._match(",", _after())
            found.append(self._optional_expression(_COMMA))
        return found[0][1]

    def _map(self) -> CelNode:
        mark = self._match("{", _after())
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

    # Tokens and recovery

    def _peek(self) -> str:
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)].kind

    def _take(self) -> Token:
        self._recovering, self._failed_at = False, -1
        self._failed_in.clear()
        return self._skip()

    def _skip(self) -> Token:
        token = self._tokens[self._next]
        if token.kind != EOF:
            self._next += 1
            self._kind = self._tokens[self._next].kind
        return token

    def _match(self, kind: str, behind: _Caller) -> Token:
        if self._kind == kind:
            return self._take()
        self._count_recovery()
        if self._peek() == kind and self._kind != EOF:
            self._unwanted(frozenset({kind}))
            self._skip()
            return self._take()
        if self._kind in self._following(behind):
            self._report(f"missing {_listed({kind})} at {self._display()}")
            return Token(kind, "", self._tokens[self._next].at, self._tokens[self._next].at)
        raise self._mismatch(frozenset({kind}))

    def _sync(self, expected: frozenset[str]) -> None:
        if self._recovering or self._kind in expected:
            if self._kind not in expected:
                raise self._mismatch(expected)
            return
        if self._kind != EOF and self._peek() in expected:
            self._unwanted(expected)
            self._skip()
            self._recovering = False
            return
        raise self._mismatch(expected)

    def _sync_in_loop(self, expected: frozenset[str]) -> None:
        if self._recovering or self._kind in expected:
            return
        self._unwanted(expected)
        self._skip_to(expected | self._wanted())

    def _rule(self, name: str, caller: _Caller, read: Callable[[], CelNode]) -> CelNode:
        self._enter(name)
        start = self._tokens[self._next].at
        self._callers.append(caller)
        try:
            return read()
        except _MismatchError as error:
            self._report(error.message)
            self._count_recovery()
            state = name, error.state
            if self._failed_at == self._next and state in self._failed_in:
                self._skip()
            self._failed_at = self._next
            self._failed_in.add(state)
            self._skip_to(self._wanted())
            return error.partial or Missing(start)
        finally:
            self._callers.pop()
            self._leave(name, 1)

    def _enter(self, name: str) -> None:
        self._depths[name] = depth = self._depths.get(name, 0) + 1
        if depth > _DEEPEST:
            self._issues.report(NOWHERE, f"expression recursion limit exceeded: {_DEEPEST}")
            raise _GaveUpError

    def _leave(self, name: str, times: int) -> None:
        self._depths[name] -= times

    def _wanted(self) -> frozenset[str]:
        return frozenset().union(*(one.tokens for one in self._callers))

    def _following(self, behind: _Caller) -> frozenset[str]:
        """Return the tokens that may follow here, in all callers that may end."""
        found, may_end = behind
        for caller in reversed(self._callers):
            if not may_end:
                break
            found |= caller.tokens
            may_end = caller.may_end
        return found

    def _skip_to(self, kinds: frozenset[str]) -> None:
        skipped = 0
        while self._kind != EOF and self._kind not in kinds:
            if skipped == _MOST_SKIPPED:
                self._issues.report(NOWHERE, f"error recovery token lookahead limit exceeded: {_MOST_SKIPPED}")
                raise _GaveUpError
            self._skip()
            skipped += 1

    def _count_recovery(self) -> None:
        if self._recoveries == _MOST_RECOVERIES:
            self._say(f"error recovery attempt limit exceeded: {_MOST_RECOVERIES}")
            raise _GaveUpError
        self._recoveries += 1

    def _unwanted(self, expected: frozenset[str]) -> None:
        self._report(f"extraneous input {self._display()} expecting {_listed(expected)}")

    def _mismatch(self, expected: frozenset[str]) -> _MismatchError:
        return _MismatchError(f"mismatched input {self._display()} expecting {_listed(expected)}", expected)

    def _no_alternative(self, state: str) -> _MismatchError:
        first, last = self._tokens[self._next], self._tokens[min(self._next + 1, len(self._tokens) - 1)]
        read, at = "", first.at
        for start, end in self._left_out:
            if first.at <= start < last.end:
                read, at = read + self._text[at:start], end
        message = f"no viable alternative at input '{_escaped(read + self._text[at : last.end])}'"
        message = _WORD_AFTER_DOT.sub(r"mismatched input '\1' expecting IDENTIFIER", message)
        if not self._recovering:
            self._recovering = True
            self._issues.report(last.at, f"Syntax error: {message}")
        return _MismatchError(message, state)

    def _report(self, message: str) -> None:
        if not self._recovering:
            self._recovering = True
            self._say(message)

    def _say(self, message: str) -> None:
        self._issues.report(self._tokens[self._next].at, f"Syntax error: {message}")

    def _display(self) -> str:
        return f"'{_escaped(self._tokens[self._next].text)}'"


@contextmanager
def _reading(read: Callable[[], CelNode]) -> Iterator[None]:
    """Keep what was read so far where a rule cannot go on: its messages are told, too."""
    try:
        yield
    except _MismatchError as error:
        error.partial = error.partial or read()
        raise


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


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _listed(kinds: Iterable[str]) -> str:
    order = sorted(kinds, key=lambda kind: ORDER.get(kind, -1))
    shown = [kind if kind.isupper() or kind == EOF else f"'{kind}'" for kind in order]
    return shown[0] if len(shown) == 1 else "{" + ", ".join(shown) + "}"


def _deepest(nodes: Iterable[CelNode]) -> int:
    return max((one.depth for one in nodes), default=0)


def _balanced(function: str, terms: list[CelNode], marks: list[int]) -> CelNode:
    """Make one tree of a chain of && or ||, so that long ones are not deep."""

    def part(low: int, high: int) -> CelNode:
        middle = (low + high + 1) // 2
        left = terms[middle] if middle == low else part(low, middle - 1)
        right = terms[middle + 1] if middle == high else part(middle + 1, high)
        return CallNode(marks[middle], function, [left, right], depth=max(left.depth, right.depth))

    return part(0, len(marks) - 1)
