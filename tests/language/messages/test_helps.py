"""A help that says "write X" is right: X compiles in place of the error or alone, or the next error is another one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from policysched.language import (
    FIELDS,
    Compiled,
    Diagnostic,
    Environment,
    Unit,
    Want,
    code_table,
    compile_expression,
    parse,
)
from policysched.language.checking.compile import compile_cases
from policysched.language.functions import FUNCTIONS
from policysched.language.ir.graph import Op, Typed, steps
from policysched.language.ir.types import GROUPS, POD_FUNCTIONS
from policysched.language.messages.suggestions import _tables
from tests.language.messages.test_messages import EXAMPLES, VARIANTS

PHASES = {
    "filter": Want.CONDITION,
    "score": Want.NUMBER,
    "let": Want.ANY,
    "appliesTo": Want.CONDITION,
    "preemption": Want.CONDITION,
}
TEXTS = [(place, text) for _, place, text in (*EXAMPLES, *VARIANTS) if place in PHASES and "\n" not in text]
METRICS = {"load": Unit.NUMBER, "cpu_load": Unit.NUMBER}
UNKNOWN = {"E0201", "E0202", "E0203", "E0205"}
ROOTS = ("node", "pod", "peer", "victim", "cluster")
_WRITTEN = re.compile(r"`([^`]+)`")
_PATH = re.compile(rf"(?<![\w.\"/-])(?:{'|'.join(ROOTS)})(?:\.[a-z_]+)+")
_CALL = re.compile(r"(?<![\w.\"])([a-z_]+(?:\.[a-z_]+)*)\(")
COMPARISONS = {Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE}


def compiled(text: str, place: str) -> Compiled:
    phase = "pod" if place == "appliesTo" else place
    return compile_expression(text, Environment(phase, metrics=METRICS), PHASES[place])  # type: ignore[arg-type]


def snippets(found: Diagnostic) -> list[str]:
    """What a help says to write, with something in place of `...`."""
    said = found.help or ""
    if "write" not in said and "did you mean" not in said:
        return []
    texts = _WRITTEN.findall(said.partition(" means ")[0])
    return [text.replace('"..."', '"a"').replace("(...)", "(true)").replace("...", '"a"') for text in texts]


def offset(text: str, found: Diagnostic) -> tuple[int, int]:
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[: found.line - 1])
    return start + found.column - 1, start + found.end_column - 1


def candidates(text: str, found: Diagnostic, snippet: str) -> Iterator[str]:
    """The text with a snippet in place of what was marked or of more of it, and the snippet alone."""
    start, end = offset(text, found)
    yield text[:start] + snippet + text[end:]
    path = re.search(r"[\w.]*\Z", text[:start])
    behind = re.match(r'(?:\.[\w]+)*(?:\["[^"]*"\]|\([^()]*\))?', text[end:])
    yield text[: start - len(path[0] if path else "")] + snippet + text[end + len(behind[0] if behind else "") :]
    yield snippet
    yield f"node.pods.any({snippet})"
    yield f"node.pods.any(has({snippet}))"


def is_right(before: Diagnostic, text: str, place: str) -> bool:
    """Whether a text compiles, or has an error that is none of an unknown name and not the one before."""
    if compiled(text, place).program is not None or compiled(text, "let").program is not None:
        return not compares_with_itself(compiled(text, "let"))
    errors = compiled(text, "let").errors
    return not any(one.code in UNKNOWN or one.code.startswith("E01") or one.message == before.message for one in errors)


def compares_with_itself(found: Compiled) -> bool:
    nodes: tuple[Typed, ...] = steps(found.program.root, inner=True) if found.program else ()
    return any(one.op in COMPARISONS and one.args[0] is one.args[1] for one in nodes)


def misleading(text: str, place: str) -> list[str]:
    """The snippets of a text's errors that lead nowhere."""
    return [
        f"{text}: {snippet}"
        for found in compiled(text, place).errors
        for snippet in snippets(found)
        if is_code(snippet) and not any(is_right(found, one, place) for one in candidates(text, found, snippet))
    ]


def is_code(snippet: str) -> bool:
    """Whether a snippet is an expression of its own: no operator, part of a case, or form with the names of a page."""
    lone = re.fullmatch(r"\w+|spec\..*", snippet) is not None
    return (
        not lone
        and not isinstance(parse(snippet), Diagnostic)
        and not re.search(r"\b(?:x|a|b|c|lo|hi|s|list|condition)\b", snippet)
    )


@pytest.mark.parametrize(("place", "text"), TEXTS)
def test_what_a_message_says_to_write_is_right(place: str, text: str) -> None:
    assert misleading(text, place) == []


LISTS = ("pod.images", "pod.claims", 'split(pod.name, "-")')
OF_LISTS = ("has", "contains", "includes", "startsWith", "ends_with", "glob", "matches", "any", "every", "size", "sort")
OF_CLUSTER = (
    *("count", "sum", "avg", "average", "min", "max", "any", "all", "exists", "every", "filter"),
    *("size", "length", "len", "total"),
)


def of_lists() -> list[str]:
    """Functions of lists, as methods and with the list as their first argument."""
    given = ('"x"', 'item == "x"', "")
    texts = [f"{one}.{name}({argument})" for one in LISTS for name in OF_LISTS for argument in given]
    names = ("contains", "starts_with", "ends_with", "glob")
    return [*texts, *(f'{name}({one}, "x")' for one in LISTS for name in names)]


def of_cluster() -> list[str]:
    """Functions of `cluster.nodes` and `cluster.pods`, as methods and with these as their first argument."""
    conditions = {"nodes": ("node.ready", "node.free.cpu"), "pods": ('peer.namespace == "a"', "peer.requests.cpu")}
    return [
        text
        for kind, arguments in conditions.items()
        for name in OF_CLUSTER
        for given in arguments
        for text in (f"cluster.{kind}.{name}({given})", f"cluster.{kind}.{name}()", f"{name}(cluster.{kind}, {given})")
    ]


@pytest.mark.parametrize("text", [*of_lists(), *of_cluster(), *(f"not {text}" for text in of_cluster())])
def test_what_is_said_of_functions_of_lists_and_of_the_cluster_is_right(text: str) -> None:
    assert misleading(text, "let") == []


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
@pytest.mark.parametrize("name", ["has_effect", "hasEffect", "contains", "effects"])
def test_no_effect_is_taken_for_the_key_of_a_toleration(name: str, effect: str) -> None:
    text = f'pod.tolerations.{name}("{effect}")'
    assert misleading(text, "filter") == []
    [found] = compiled(text, "filter").errors
    assert found.help == f'write `pod.tolerations.effect("...") == "{effect}"`, with the key of the toleration'


SEVERAL = ('"a" {0} "b"', '"a" {0} "b" {0} "c"', "3 {0} 4", "2 {0} 3 {0} 4 {0} 5")


@pytest.mark.parametrize(("sign", "word", "list_sign"), [
    ("==", "or", "in"), ("==", "||", "in"), ("!=", "or", "not in"), ("!=", "and", "not in"), ("!=", "&&", "not in"),
])  # fmt: skip
@pytest.mark.parametrize("form", ["{0} {1} ({2})", "{0} {1} {2}", "({2}) {1} {0}", "{0} {1} ({2}) and node.ready"])
@pytest.mark.parametrize("several", SEVERAL)
def test_values_between_which_a_word_stands_are_a_list(
    form: str, several: str, sign: str, word: str, list_sign: str
) -> None:
    value = "pod.namespace" if '"' in several else "pod.priority"
    text = form.format(value, sign, several.format(word))
    [found] = compiled(text, "filter").errors
    items = ", ".join(several.replace("{0}", "").split())
    assert (found.code, found.help) == ("E0302", f"write `{value} {list_sign} [{items}]`")
    assert compiled(f"{value} {list_sign} [{items}]", "filter").errors == ()


@pytest.mark.parametrize("text", ["node.ready -> 80", "node.free.cpu > 2 →  10", "true → 1"])
def test_a_case_in_a_value_is_to_be_written_under_cases(text: str) -> None:
    [found] = compiled(text, "score").errors
    [case] = re.findall(r"`cases: \['(.*)'\]`", found.help or "")
    assert compile_cases([case], Environment("score")).errors == ()
    assert "filter" not in found.message


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def misspelt(name: str) -> set[str]:
    """A name with a letter less, one twice, two swapped, in the plural, with capitals."""
    middle = len(name) // 2
    swapped = name[:middle] + name[middle : middle + 2][::-1] + name[middle + 2 :]
    made = {name[:middle] + name[middle + 1 :], name[:middle] + name[middle] + name[middle:], swapped, f"{name}s"}
    return {*made, name.removesuffix("s"), camel(name), name.upper(), name.replace("_", "")} - {name, ""}


def comparisons_with_nothing() -> list[str]:
    """Every field, its presence tested as other languages write it."""
    fields = {names: field for names, field in FIELDS.items() if not field.called and names[0] in {"node", "pod"}}
    read = [".".join(names) + ('["a"]' if field.keyed else "") for names, field in fields.items()]
    texts = [f"{one} {sign} {word}" for one in read for sign in ("==", "!=") for word in ("null", "None", "NULL")]
    texts += [text for one in read for text in (f"None != {one}", f"{one} is not Null", f"{one}.exists()")]
    keyed = [".".join(names) for names, field in fields.items() if field.keyed]
    return [*texts, *(f'"a" {word} {one}' for one in keyed for word in ("in", "not in"))]


def test_what_is_said_of_a_test_of_presence_is_right() -> None:
    for text in comparisons_with_nothing():
        assert misleading(text, "let") == []
        [found] = compiled(text, "let").errors
        for snippet in snippets(found):
            assert compiled(snippet, "let").diagnostics == (), text


def wrong_fields() -> list[str]:
    texts = set()
    for names, field in FIELDS.items():
        tail = '["a"]' if field.keyed else '("a")' if field.called else ""
        wrong = {(*names[:-1], one) for one in misspelt(names[-1])}
        wrong |= {(names[0], layer, *names[1:]) for layer in ("spec", "status", "metadata")}
        wrong |= {(root, *names[1:]) for root in ("node", "pod", "cluster")}
        for path in wrong:
            text = ".".join(path) + tail
            texts |= {text, f"node.pods.any(has({text}))"}
            texts |= {f"{'.'.join(names)}{tail} == {text}"} if path[0] != names[0] else set()
    return sorted(texts)


FIELD_TEXTS = wrong_fields()


@pytest.mark.parametrize("part", range(8))
def test_what_is_said_of_a_misspelt_field_is_right(part: int) -> None:
    assert [one for text in FIELD_TEXTS[part::8] for one in misleading(text, "let")] == []


def read_of(root: str) -> list[str]:
    """The fields of the pending pod, of placed pods and of victims, read of one of these."""
    fields = {names[1:]: field for names, field in FIELDS.items() if names[0] in {"pod", "peer", "victim"}}
    return [
        ".".join((root, *names)) + ('["a"]' if field.keyed else '("a")' if field.called else "")
        for names, field in fields.items()
    ]


def test_no_help_gives_a_victim_the_fields_of_the_pending_pod() -> None:
    for text in (*read_of("victim"), *read_of("peer")):
        assert misleading(text, "preemption") == []
        for found in compiled(f"has({text})", "preemption").errors:
            assert "`pod." not in re.sub(r"only as `[^`]*`", "", found.help or ""), text


def test_a_placed_pod_that_is_called_a_victim_is_a_peer() -> None:
    for text in read_of("victim"):
        for found in compiled(f"node.pods.any(has({text}))", "filter").errors:
            assert found.code == "E0205" or "write `peer" in (found.help or ""), text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_said_of_a_misspelt_function_is_right(name: str) -> None:
    arguments = FUNCTIONS[name].example.partition(f"{name}(")[2].partition(")")[0]
    for one in misspelt(name):
        texts = (f"{one}({arguments})", f"node.name.{one}()", f"pod.images.{one}()", f"node.pods.{one}(true)")
        for text in texts if "." not in name else texts[:1]:
            assert misleading(text, "let") == []


HELPS = [help_text for entry in code_table().values() for _, help_text in entry.sentences.values()]
HELPS += [text for table in _tables().values() for pair in table.items() for text in pair]


@pytest.mark.parametrize("said", [said for said in HELPS if said])
def test_a_help_names_fields_and_functions_that_exist(said: str) -> None:
    for path in _PATH.findall(said):
        names = tuple(path.split("."))
        assert names in FIELDS or names in GROUPS or names in POD_FUNCTIONS, path
    if "write" in said:
        for name in _CALL.findall(said):
            assert name in FUNCTIONS or tuple(name.split(".")) in FIELDS or name in {"x", "guard"}, name


@pytest.mark.parametrize(
    ("text", "help_text"),
    [
        ("node.zone is null", "write `not has(node.zone)`"),
        ("node.ready and node.zone is not null", "write `has(node.zone)`"),
        ("node.zone == null", "write `not has(node.zone)`"),
        ("none != node.zone", "write `has(node.zone)`"),
        ("node.zone != None", "write `has(node.zone)`"),
        ("(node.zone) != NULL", "write `has((node.zone))`"),
        ("Null == node.zone", "write `not has(node.zone)`"),
        ("pod.requests.cpu != None", "a missing resource is 0; write `pod.requests.cpu > 0`"),
        ("pod.priority == null", "a missing priority is 0; write `pod.priority == 0`"),
        ('pod.claims.has("a")', 'write `"a" in pod.claims`'),
        ('contains(pod.claims, "a")', 'write `"a" in pod.claims`'),
        ('pod.images.some(item == "a")', 'write `any(pod.images, item == "a")`'),
        ('pod.images.startsWith("a")', 'write `any(pod.images, starts_with(item, "a"))`'),
        ('cluster.pods.count(peer.name == "a") < 2', 'write `sum(node.pods.count(peer.name == "a"))`'),
        ('count(cluster.pods, peer.name == "a") < 2', 'write `sum(node.pods.count(peer.name == "a"))`'),
        ("cluster.nodes.count(node.ready) > 1", "write `count(node.ready)`"),
        ("max(cluster.nodes, node.free.cpu) > 1", "write `max(node.free.cpu)`"),
        ("null != pod.qos", "`pod.qos` is never missing"),
        ("node.zone == pod.zone", 'a pod has no such field; write a label, as in `pod.labels["zone"]`'),
        ("pod.priority > node.priority", 'a node has no such field; write a label, as in `node.labels["priority"]`'),
        ('pod.namespace.labels["team"] == "a"', 'write `pod.namespace_labels["team"]`'),
        ('pod.namespace.metadata.labels["team"] == "a"', 'write `pod.namespace_labels["team"]`'),
        ('pod.namespace.labels.team == "a"', 'write `pod.namespace_labels["team"]`'),
        ("node.conditions.DiskPressure", 'write `node.conditions["DiskPressure"]`'),
        ('node.status.conditions["Ready"] == "True"', 'write `node.conditions["Ready"]`'),
        ('node.status.nodeInfo.kubeletVersion == "a"', "write `node.kubelet_version`"),
        ('pod.spec.tolerations.has("a")', 'write `pod.tolerations.has("a")`'),
        (
            "random() > 1",
            "random values are not available; of several nodes with the highest score, one is drawn at random",
        ),
    ],
)
def test_a_help_leads_to_what_was_meant(text: str, help_text: str) -> None:
    [found] = compiled(text, "filter").errors
    assert found.help == help_text


@pytest.mark.parametrize("unit", [Unit.CPU, Unit.BYTES, Unit.DURATION])
@pytest.mark.parametrize(
    "form",
    [
        "metrics.cpu_load > {0}",
        "(metrics.cpu_load < {0}) ?? true",
        "{0} < 2 * metrics.cpu_load",
        "metrics.cpu_load + {0} > {0}",
        "metrics.cpu_load in [{0}]",
        "metrics.cpu_load / {0} > 80%",
        "scale(metrics.cpu_load, 0, {0}) > 3",
        "(metrics.cpu_load ?? {0}) > {0}",
        "if(node.ready, metrics.cpu_load, {0}) > {0}",
    ],
)
def test_a_metric_without_a_unit_is_to_be_declared_with_the_unit_beside_it(form: str, unit: Unit) -> None:
    amount = {Unit.CPU: "node.free.cpu", Unit.BYTES: "4Gi", Unit.DURATION: "5min"}[unit]
    if "[" in form and unit is Unit.CPU:  # a list has constants only, and `500m` is also a plain number
        return
    text = form.format(amount)
    errors = compiled(text, "filter").errors
    assert [one.help for one in errors] == [f"declare `unit: {unit.value}` for the metric `cpu_load`"]
    mended = Environment("filter", metrics={"cpu_load": unit})
    assert compile_expression(text, mended, Want.CONDITION).errors == ()


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ('node.free["hugepages-2Mi"] > 1Gi', 'node.free["hugepages-2Mi"] > 1073741824'),
        ('number(node.labels["age"]) > 1.5min', 'number(node.labels["age"]) > 90'),
        ("4Ki == cluster.nodes", "4096 == cluster.nodes"),
    ],
)
def test_an_amount_beside_a_plain_number_is_to_be_written_without_its_unit(text: str, mended: str) -> None:
    [found] = compiled(text, "filter").errors
    instead, amount = _WRITTEN.findall(found.help or "")
    assert text.replace(amount, instead) == mended
    assert compiled(mended, "filter").errors == ()


@pytest.mark.parametrize(
    ("value", "divisor"), [("node.free.cpu", "1000m"), ("node.free.memory", "1Gi"), ("node.age", "1min")]
)
def test_a_named_number_is_compared_with_a_share(value: str, divisor: str) -> None:
    """No help says to write a unit where a name has none."""
    limit = compile_expression("500m", Environment("let")).program
    assert limit is not None
    around = Environment("filter", lets={"limit": limit.root})
    [found] = compile_expression(f"{value} > limit", around, Want.CONDITION).errors
    assert divisor in (found.help or "")
    assert "as in 2" not in (found.help or "")
    assert compile_expression(f"{value} / {divisor} > limit", around, Want.CONDITION).errors == ()
