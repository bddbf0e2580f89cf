"""ANTLR's error recovery, so that invalid expressions get the messages of cel-go.

Before each decision, a generated ANTLR parser checks whether the next token fits (`_sync`). If one dropped or inserted
token repairs the text, the parser continues. Otherwise it leaves rules until the next token is one that a caller
expects. Each rule is called with the tokens that its caller expects; recovery stops at a token of this stack.

Source: the ANTLR runtime's DefaultErrorStrategy; cel-go v0.26 parser/parser.go (its limits).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from policysched.cel.issues import NOWHERE, Issues
from policysched.cel.syntax.tokens import EOF, ORDER, Token, tokens
from policysched.cel.syntax.tree import CelNode, Missing

DEEPEST: Final = 250
"""Maximum nesting of calls of one grammar rule, and maximum depth of a tree; deeper nesting is an error."""
_MOST_RECOVERIES: Final = 30
_MOST_SKIPPED: Final = 256
_WORD_AFTER_DOT: Final = re.compile(r"no viable alternative at input '.(true|false|null)'")


class MismatchError(Exception):
    """Raised if a grammar rule cannot continue at the current token; `state` is the position in the rule."""

    def __init__(self, message: str, state: object) -> None:
        super().__init__(message)
        self.message, self.state = message, state
        self.partial: CelNode | None = None
        """The part of the rule that was read before the error."""


class GaveUpError(Exception):
    """Raised if the parser stops because error recovery is impossible."""


class Caller(NamedTuple):
    """The tokens that may follow a grammar rule in its caller, and whether the caller can end there too."""

    tokens: frozenset[str]
    may_end: bool


def after(*kinds: str, may_end: bool = False) -> Caller:
    """Return the tokens that may follow a grammar rule, from their kinds."""
    return Caller(frozenset(kinds), may_end)


class RecoveringReader:
    """Reads tokens for the grammar rules and recovers from syntax errors as ANTLR does.

    Args:
        text: The expression.
        issues: Receives the errors.
    """

    def __init__(self, text: str, issues: Issues) -> None:
        self._text, self._issues = text, issues
        self._tokens, self._left_out = tokens(text, issues)
        self._next = 0
        self._kind = self._tokens[0].kind
        self._callers: list[Caller] = []
        self._recovering = False
        self._recoveries = 0
        self._failed_at = -1
        self._failed_in: set[object] = set()
        self._depths: dict[str, int] = {}

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

    def _match(self, kind: str, behind: Caller) -> Token:
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

    def _rule(self, name: str, caller: Caller, read: Callable[[], CelNode]) -> CelNode:
        self._enter(name)
        start = self._tokens[self._next].at
        self._callers.append(caller)
        try:
            return read()
        except MismatchError as error:
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
        if depth > DEEPEST:
            self._issues.report(NOWHERE, f"expression recursion limit exceeded: {DEEPEST}")
            raise GaveUpError

    def _leave(self, name: str, times: int) -> None:
        self._depths[name] -= times

    def _wanted(self) -> frozenset[str]:
        return frozenset().union(*(one.tokens for one in self._callers))

    def _following(self, behind: Caller) -> frozenset[str]:
        """Return the tokens that may follow, including those of outer callers whose rules can end here."""
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
                raise GaveUpError
            self._skip()
            skipped += 1

    def _count_recovery(self) -> None:
        if self._recoveries == _MOST_RECOVERIES:
            self._say(f"error recovery attempt limit exceeded: {_MOST_RECOVERIES}")
            raise GaveUpError
        self._recoveries += 1

    def _unwanted(self, expected: frozenset[str]) -> None:
        self._report(f"extraneous input {self._display()} expecting {_listed(expected)}")

    def _mismatch(self, expected: frozenset[str]) -> MismatchError:
        return MismatchError(f"mismatched input {self._display()} expecting {_listed(expected)}", expected)

    def _no_alternative(self, state: str) -> MismatchError:
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
        return MismatchError(message, state)

    def _report(self, message: str) -> None:
        if not self._recovering:
            self._recovering = True
            self._say(message)

    def _say(self, message: str) -> None:
        self._issues.report(self._tokens[self._next].at, f"Syntax error: {message}")

    def _display(self) -> str:
        return f"'{_escaped(self._tokens[self._next].text)}'"


@contextmanager
def reading(read: Callable[[], CelNode]) -> Iterator[None]:
    """Keep the part of the tree that was read before a grammar rule failed, as its errors are reported too."""
    try:
        yield
    except MismatchError as error:
        error.partial = error.partial or read()
        raise


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _listed(kinds: Iterable[str]) -> str:
    order = sorted(kinds, key=lambda kind: ORDER.get(kind, -1))
    shown = [kind if kind.isupper() or kind == EOF else f"'{kind}'" for kind in order]
    return shown[0] if len(shown) == 1 else "{" + ", ".join(shown) + "}"
