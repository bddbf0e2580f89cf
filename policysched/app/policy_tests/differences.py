"""Comparison of a decision record with a test's expectation; a difference has reasons from the record.

Unknown names of nodes, pods and rules are errors of the test, not differences. Otherwise an expectation about a missing
node would always pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from policysched.app.policy_tests.file_format import (
    Expectation,
    NodeExpectation,
    Numbers,
    RuleExpectation,
    TextExpectation,
)
from policysched.errors import UsageError
from policysched.language.messages.suggestions import did_you_mean

Record = Mapping[str, Any]
CLOSE: Final = 0.005
"""Largest distance at which an actual score equals an expected score, which tests state with two digits."""
MOST_REASONS: Final = 5
"""Largest number of nodes in the reasons of a difference."""
MOST_NAMES: Final = 12
"""Largest number of names in a difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A result that differs from the expectation."""

    field: str
    """Path of the expectation in the test file."""
    what: str
    expected: str
    got: str
    reasons: tuple[str, ...] = ()
    """Reasons of the difference from the decision record, one line each."""

    def lines(self) -> list[str]:
        """Return the difference as lines."""
        said = [f"{self.what}:", f"  expected: {self.expected}", f"  got:      {self.got}"]
        return said + [f"  {one}" for one in self.reasons]


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Names of nodes, rules and other objects that a test's expectations can use."""

    nodes: Sequence[str]
    pods: Sequence[str]
    policies: Sequence[str]
    filters: Sequence[str]
    """Filter rules of the policies, as POLICY/RULE."""
    scores: Sequence[str]


Refuse = Callable[[str, str], UsageError]
"""Function that returns an error about the expectation at a path."""


class RecordComparison:
    """Compares a decision record with an expectation.

    Args:
        record: The record.
        expected: The expectation.
        names: The known names.
        refuse: Returns the error for an unknown name.
        path: The path of the expectation, for differences and errors.
    """

    def __init__(self, record: Record, expected: Expectation, names: KnownNames, refuse: Refuse, path: str) -> None:
        self._record, self._expected, self._names = record, expected, names
        self._refuse, self._path = refuse, path

    def all(self) -> Iterator[Difference]:
        """Yield the differences.

        Raises:
            UsageError: the expectation contains an unknown name.
        """
        yield from self._outcome()
        yield from self._filters()
        yield from self._scores()
        yield from self._plugins()
        for name, wanted in self._expected.nodes.items():
            for node in self._match([name], self._names.nodes, f"nodes.{name}", "node"):
                yield from self._node(node, wanted, f"nodes.{name}")
        yield from self._devices()
        yield from self._texts()
        yield from self._preemption()

    def _outcome(self) -> Iterator[Difference]:
        expected, record = self._expected, self._record
        if expected.result is not None:
            yield from self._same("result", "result", expected.result, record["result"], self._of_nodes([]))
        if expected.selected is not None:
            [node] = self._match([expected.selected], self._names.nodes, "selected", "node", patterns=False)
            got = record.get("selected", "none")
            yield from self._same("selected", "selected node", node, got, self._of_nodes([node, got]))
        if expected.best is not None:
            best = self._match(expected.best, self._names.nodes, "best", "node")
            got_best = record.get("best", [])
            reasons = self._of_nodes(sorted(set(best) ^ set(got_best)))
            yield from self._same("best", "best nodes", _listed(best), _listed(got_best), reasons)
        if expected.ties is not None:
            ties = len(record.get("best", []))
            yield from self._same("ties", "nodes with the same score", str(expected.ties), str(ties), [])

    def _filters(self) -> Iterator[Difference]:
        said = {
            f"{policy}/{rule}": nodes
            for policy, told in self._record.get("rules", {}).items()
            for rule, nodes in told.get("filters", {}).items()
        }
        wanted = {self._rule(name, self._names.filters, f"rejected.{name}"): name for name in self._expected.rejected}
        looked = {self._rule(name, self._names.filters, f"rules.{name}"): name for name in self._expected.rules}
        for rule in self._names.filters:
            nodes = said.get(rule, {})
            if rule in looked:
                yield from self._rule_says(rule, self._expected.rules[looked[rule]], nodes, f"rules.{looked[rule]}")
            if rule in looked and rule not in wanted:
                continue
            name = wanted.get(rule)
            field = "" if name is None else f"rejected.{name}"
            turned = self._match(self._expected.rejected[name], self._names.nodes, field, "node") if name else []
            reasons = self._of_nodes(sorted(set(turned) ^ set(nodes)))
            what, expected = f"nodes that {rule} rejects", _listed(turned)
            if name is None and nodes:
                given = f"does not name {rule}" if wanted else "is not given"
                expected = f"none, because `rejected` {given}"
            yield from self._same(field, what, expected, _listed(nodes), reasons)

    def _rule_says(
        self, rule: str, wanted: RuleExpectation, said: Mapping[str, str], path: str
    ) -> Iterator[Difference]:
        got = {
            "kept": [node for node in self._names.nodes if node not in said],
            **{why: [node for node, found in said.items() if found == why] for why in ("false", "missing")},
        }
        for field, nodes in got.items():
            names = getattr(wanted, field)
            if names is not None:
                expected = self._match(names, self._names.nodes, f"{path}.{field}", "node")
                what = f"nodes that {rule} keeps" if field == "kept" else f"nodes where {rule} is {field}"
                reasons = self._of_nodes(sorted(set(expected) ^ set(nodes)))
                yield from self._same(f"{path}.{field}", what, _listed(expected), _listed(nodes), reasons)

    def _scores(self) -> Iterator[Difference]:
        if self._expected.scores is None:
            return
        said = {
            f"{policy}/{rule}": nodes
            for policy, told in self._record.get("rules", {}).items()
            for rule, nodes in told.get("scores", {}).items()
        }
        wanted = {self._rule(name, self._names.scores, f"scores.{name}"): name for name in self._expected.scores}
        got_rules, rules = [one for one in self._names.scores if one in said], sorted(wanted)
        yield from self._same("scores", "evaluated scores", _listed(rules), _listed(got_rules), [])
        for rule, name in wanted.items():
            if rule in said:
                numbers = self._spread(self._expected.scores[name], f"scores.{name}")
                yield from self._numbers(f"scores.{name}", f"score {rule}", numbers, said[rule], whole=True)

    def _plugins(self) -> Iterator[Difference]:
        scores = self._record.get("scores", {})
        known = sorted({plugin for of_node in scores.values() for plugin in of_node})
        for plugin, wanted in self._expected.plugins.items():
            if scores:
                self._match([plugin], known, f"plugins.{plugin}", "plugin", patterns=False)
            got = {node: of_node.get(plugin) for node, of_node in scores.items()}
            numbers = self._spread(wanted, f"plugins.{plugin}")
            yield from self._numbers(f"plugins.{plugin}", f"score of {plugin}", numbers, got)
        if self._expected.total:
            numbers = self._spread(self._expected.total, "total")
            yield from self._numbers("total", "total", numbers, self._record.get("total", {}))
        tiers = self._record.get("tiers", {})
        known = sorted({tier for of_node in tiers.values() for tier in of_node}, key=int)
        for tier, wanted in self._expected.tiers.items():
            if self._record.get("total"):
                self._match([tier], known, f"tiers.{tier}", "tier", patterns=False)
            got = {node: of_node.get(tier) for node, of_node in tiers.items()}
            numbers = self._spread(wanted, f"tiers.{tier}")
            yield from self._numbers(f"tiers.{tier}", f"sum of tier {tier}", numbers, got)

    def _spread(self, wanted: Numbers, path: str) -> dict[str, float | None]:
        """Return the expected numbers by node; an entry with a node's exact name has priority over patterns."""
        named = {name: value for name, value in wanted.items() if not _is_pattern(name)}
        self._match(list(named), self._names.nodes, path, "node")
        made: dict[str, float | None] = {}
        feasible = set(self._record.get("total", {}))
        for pattern, value in wanted.items():
            if pattern not in named:
                nodes = self._match([pattern], self._names.nodes, f"{path}.{pattern}", "node")
                made |= {node: value for node in nodes if node in feasible}
        return made | named

    def _numbers(
        self, field: str, what: str, wanted: Numbers, got: Mapping[str, Any], *, whole: bool = False
    ) -> Iterator[Difference]:
        absent = object()
        over = [*wanted, *(node for node in sorted(got) if whole and node not in wanted)]
        wrong = [node for node in over if not _close(wanted.get(node, absent), got.get(node, absent))]
        if wrong:
            expected = ", ".join(f"{one} {_number(wanted[one])}" if one in wanted else f"{one} none" for one in wrong)
            found = ", ".join(f"{one} {_number(got[one])}" if one in got else f"{one} none" for one in wrong)
            yield Difference(self._at(field), what, expected, found, tuple(self._of_nodes(wrong)))

    def _node(self, node: str, wanted: NodeExpectation, path: str) -> Iterator[Difference]:
        rejection = self._record.get("rejected", {}).get(node, self._record.get("preFilter", {}))
        reasons = self._of_nodes([node])
        if wanted.feasible is not None:
            feasible = str(node in self._record.get("total", {})).lower()
            yield from self._same(
                f"{path}.feasible", f"{node} feasible", str(wanted.feasible).lower(), feasible, reasons
            )
        for name in ("plugin", "code"):
            value = getattr(wanted, name)
            if value is not None:
                got = rejection.get(name, "none")
                yield from self._same(f"{path}.{name}", f"{name} that rejects {node}", value, got, reasons)
        if wanted.reason is not None:
            told = rejection.get("reasons", [])
            if not any(holds(wanted.reason, one) for one in told):
                what = f"reason for rejecting {node}"
                yield Difference(self._at(f"{path}.reason"), what, text_of(wanted.reason), "; ".join(told) or "none")

    def _texts(self) -> Iterator[Difference]:
        record, expected = self._record, self._expected
        for name, field, wanted in (("reason", "fitError", expected.reason), ("error", "error", expected.error)):
            if wanted is not None and not holds(wanted, record.get(field, "")):
                got = record.get(field) or "none"
                others = tuple(one for one in self._of_nodes([]) if one != got)
                yield Difference(self._at(name), name, text_of(wanted), got, others)
        for policy, wanted in expected.not_applied.items():
            self._match([policy], self._names.policies, f"notApplied.{policy}", "policy", patterns=False)
            got = record.get("notApplied", {}).get(policy, "")
            if not got or not holds(wanted, got):
                yield Difference(
                    self._at(f"notApplied.{policy}"),
                    f"reason why {policy} does not apply",
                    text_of(wanted),
                    got or "it applies",
                )

    def _devices(self) -> Iterator[Difference]:
        said = {
            claim: [f"{one['driver']}/{one['pool']}/{one['device']}" for one in results]
            for claim, results in self._record.get("devices", {}).items()
        }
        for claim, wanted in self._expected.devices.items():
            if said:
                self._match([claim], sorted(said), f"devices.{claim}", "claim", patterns=False)
            got = said.get(claim, [])
            # an unmatched pattern is kept, so that it appears in the difference
            named = {device for one in wanted for device in ([x for x in got if fnmatchcase(x, one)] or [one])}
            listed = _listed(sorted(named)), _listed(sorted(got))
            yield from self._same(f"devices.{claim}", f"devices of {claim}", *listed, self._of_nodes([]))

    def _preemption(self) -> Iterator[Difference]:
        record, expected = self._record, self._expected
        kept = sorted({pod for told in record.get("rules", {}).values() for pod in told.get("preemption", {})})
        protected = self._match(expected.protected, self._names.pods, "protected", "pod")
        yield from self._same("protected", "protected pods", _listed(protected), _listed(kept), [])
        room = record.get("nominated")
        got = {} if room is None else {room["node"]: sorted(room["victims"])}
        for node in expected.nominated:
            self._match([node], self._names.nodes, f"nominated.{node}", "node", patterns=False)
        wanted = {
            node: sorted(self._match(pods, self._names.pods, f"nominated.{node}", "pod"))
            for node, pods in expected.nominated.items()
        }
        told = record.get("preemption", {}).get("message", "")
        yield from self._same("nominated", "preemption victims", _room(wanted), _room(got), [told] if told else [])

    def _same(self, field: str, what: str, expected: str, got: str, reasons: Iterable[str]) -> Iterator[Difference]:
        if expected != got:
            yield Difference(self._at(field), what, expected, got, tuple(reasons))

    def _at(self, field: str) -> str:
        return f"{self._path}.{field}" if field else self._path

    def _rule(self, name: str, rules: Sequence[str], field: str) -> str:
        found = [rule for rule in rules if name in (rule, rule.partition("/")[2])]
        if len(found) == 1:
            return found[0]
        if found:
            raise self._refuse(self._at(field), f"several policies have a rule `{name}`; write {' or '.join(found)}")
        filters = rules is self._names.filters
        others = self._names.scores if filters else self._names.filters
        if any(name in {rule, rule.partition("/")[2]} for rule in others):
            kinds = ("a score", "a filter") if filters else ("a filter", "a score")
            raise self._refuse(self._at(field), f"`{name}` is {kinds[0]}, not {kinds[1]}")
        raise self._unknown("rule", name, [*rules, *(rule.partition("/")[2] for rule in rules)], field)

    def _match(
        self, names: Iterable[str], known: Sequence[str], field: str, kind: str, *, patterns: bool = True
    ) -> list[str]:
        """Return the known names that match names and patterns."""
        found: set[str] = set()
        there = set(known)
        for name in names:
            if patterns and _is_pattern(name):
                matching = [one for one in known if fnmatchcase(one, name)]
            else:
                matching = [name] if name in there else []
            if not matching:
                raise self._unknown(kind, name, known, field)
            found.update(matching)
        return sorted(found)

    def _unknown(self, kind: str, name: str, known: Sequence[str], field: str) -> UsageError:
        some = sorted(set(known))
        rest = f" and {len(some) - MOST_NAMES} more" if len(some) > MOST_NAMES else ""
        there = f"known: {', '.join(some[:MOST_NAMES])}{rest}" if some else f"the test has no {kind}"
        return self._refuse(self._at(field), f"no {kind} `{name}`; {did_you_mean(name, some) or there}")

    def _of_nodes(self, nodes: Sequence[str]) -> list[str]:
        """Return the results of nodes as reasons of a difference, or why the pod fits no node."""
        said = [line for node in nodes[:MOST_REASONS] if (line := self._of_node(node))]
        if len(nodes) > MOST_REASONS:
            said.append(f"… and {len(nodes) - MOST_REASONS} more nodes")
        record = self._record
        waits = record.get("error") or record.get("fitError")
        silent = [f"policy {policy} does not apply: {text}" for policy, text in record.get("notApplied", {}).items()]
        return [*said, *([waits] if waits and not said else []), *silent]

    def _of_node(self, node: str) -> str:
        rejection = self._record.get("rejected", {}).get(node)
        if rejection is not None:
            return f"{node} is rejected by {rejection['plugin']}: {'; '.join(rejection['reasons'])}"
        total = self._record.get("total", {}).get(node)
        if total is None:
            return ""
        parts = ", ".join(f"{plugin} {value}" for plugin, value in self._record.get("scores", {}).get(node, {}).items())
        tiers = self._record.get("tiers", {}).get(node, {})
        has = f"{node} has " + "".join(f"{value} in tier {tier}, " for tier, value in tiers.items()) + str(total)
        return f"{has}: {parts}" if parts else has


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered) or "none"


def _room(pods: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{', '.join(gone)} on {node}" for node, gone in pods.items()) or "none"


def _number(value: Any) -> str:
    return "no score" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _close(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, int | float) and isinstance(got, int | float):
        return abs(wanted - got) <= CLOSE
    return wanted is got


def holds(wanted: str | TextExpectation, text: str) -> bool:
    """Return whether a text is as expected."""
    if isinstance(wanted, str):
        return wanted.strip() == text
    return (wanted.equals is None or wanted.equals == text) and (wanted.contains or "") in text


def text_of(wanted: str | TextExpectation) -> str:
    """Format an expected text for the output of a difference."""
    if isinstance(wanted, str):
        return wanted
    parts = [wanted.equals or "", f"… {wanted.contains} …" if wanted.contains is not None else ""]
    return " ".join(filter(None, parts))
