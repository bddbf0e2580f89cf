"""Hostile selectors end: compiled in work that their length bounds, evaluated in the work that is allowed."""

from __future__ import annotations

import pytest

from policysched.cel import Variables, compile_selector
from tests import work
from tests.cel.devices import DEVICE, says

COST = "operation cancelled: actual cost limit exceeded"


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))",
        "lists.range(2000000).size() > 0",
        "lists.range(9223372036854775807).size() > 0",
        "lists.range(2000).map(x, lists.range(2000).map(y, y)).size() == 1",
        "lists.range(4000).distinct().size() == 1",
        "sets.contains(lists.range(4000), lists.range(4000))",
        'cel.bind(b, "xxxxxxxxxx".replace("", "xxxxxxxxxx"), b.replace("", b).replace("", b).replace("", b)) == ""',
        '"%.999999999f".format([1.5]) == ""',
    ],
)
def test_selector_that_does_too_much_is_stopped(text: str) -> None:
    assert says(text) == COST


def _nested(inner: str, start: str, depth: int, end: str) -> str:
    """Bind a name `depth` times to what is made of the name before."""
    text = end.replace("@", f"v{depth}")
    for place in range(depth, 0, -1):
        text = f"cel.bind(v{place}, {inner.replace('@', f'v{place - 1}')}, {text})"
    return f"cel.bind(v0, {start}, {text})"


@pytest.mark.parametrize(
    ("inner", "start", "end"),
    [
        ("@ + @", '"xxxxxxxxxxxxxxxx"', "@.size() > 0"),
        ("@ + @", "[1, 2, 3, 4]", "@.size() > 0"),
        ("[@, @]", "[[1]]", "@ == @"),
        ("[dyn(@), dyn(@)]", "[dyn(1)]", '"%s".format([@]) == ""'),
    ],
)
def test_values_that_double_are_stopped(inner: str, start: str, end: str) -> None:
    assert says(_nested(inner, start, 40, end)) == COST


def _lines_of(condition: str) -> int:
    selector = compile_selector(f"lists.range(1000).all(x, lists.range(1000).all(y, {condition}))")
    device = Variables(DEVICE)
    assert selector.matches(device) == COST
    return work.lines(lambda: selector.matches(device))


def test_stopped_selector_runs_a_bounded_number_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    work_of = []
    for limit in (20_000, 80_000):
        monkeypatch.setattr("policysched.cel.device.LIMIT", limit)
        work_of.append(_lines_of("x + y >= 0"))
    assert work_of[1] < 4.4 * work_of[0]


@pytest.mark.parametrize(
    "condition",
    [
        'url("https://a.b/c?d=e").getHost() == "a.b"',
        'cidr("10.0.0.0/8").containsIP("10.0.0.1")',
        'semver("1.2.3").compareTo(semver("1.2.4")) < 0',
        'quantity("1Gi").add(quantity("1Mi")).isGreaterThan(quantity("1Ki"))',
        '"%d %s %f".format([x, "a", 1.5]) != ""',
        'ip("::1").family() == 6',
        '(timestamp("2020-01-01T00:00:00Z") + duration(string(x) + "s")).getDayOfYear("Europe/Berlin") >= 0',
    ],
)
def test_functions_count_as_what_they_take(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.cel.device.LIMIT", 20_000)
    assert _lines_of(condition) < 2 * _lines_of("x + y >= 0")


def test_a_selector_that_was_stopped_leaves_the_next_ones_their_work() -> None:
    assert says("lists.range(2000000).size() > 0") == COST
    assert (
        says(f'timestamp("2020-01-01T00:00:00Z") < timestamp("2021-01-01T00:00:00Z") && int("{7:020d}") == 7') is True
    )


@pytest.mark.parametrize("pattern", [r"'\\pL{20}' + string(x)", r"'(a?){900}' + string(x)", r"'\\pL|' + string(x)"])
def test_patterns_made_in_loops_count_as_what_compiling_them_takes(pattern: str) -> None:
    assert says(f"lists.range(1000).all(x, 'a'.matches({pattern}) || true)") == COST


def test_patterns_that_take_long_to_compile_are_refused() -> None:
    many = " || ".join(rf"device.driver.matches('\\pL{{20}}{place}')" for place in range(40))
    for text in (many, "device.driver.matches('" + "|".join([r"\\pL"] * 2000) + "')"):
        assert "take too much to compile" in str(says(text))
    assert "expression too large" in str(says(r"'a'.matches('\\pL{400}' + device.driver)"))


@pytest.mark.parametrize(
    "first, then, last",
    [
        ("{1: 1}", "{%s: %s}", "true"),
        ("{1: 1}", "{%s: %s}", "a%d == {a%d: 1}"),
        ("[]", "[[], [{%s: %s}]][0]", "a%d + a%d == []"),
    ],
    ids=["maps of maps", "compared ones", "of what is not known yet"],
)
def test_types_that_double_with_each_part_are_refused(first: str, then: str, last: str) -> None:
    def text(depth: int) -> str:
        made = last % (depth - 1, depth - 2) if "%" in last else last
        for number in reversed(range(depth)):
            value = then % (f"a{number - 1}", f"a{number - 1}") if number else first
            made = f"cel.bind(a{number}, {value}, {made})"
        return made

    assert "take too much to compile" not in str(says(text(8)))
    assert "types, patterns and constants take too much to compile" in str(says(text(24)))
    assert work.lines(lambda: says(text(60))) < 4 * work.lines(lambda: says(text(24)))


def test_a_long_text_is_not_searched_with_a_large_pattern() -> None:
    text = "lists.range(20000).map(x, 'a').join()"
    assert says(f"{text}.matches('(a?){{1000}}b')") == COST
    assert says(f"{text}.findAll('a|b').size() > 0") == COST
    assert says(f"{text}.matches('a+b')") is False


@pytest.mark.parametrize(
    ("grow", "most"),
    [
        (lambda size: " && ".join(["true"] * size), 400),
        (lambda size: "+".join(["1"] * size) + " == 1", 400),
        (lambda size: "[" * size, 400),
        (lambda size: "[" * (size // 2) + "]" * (size // 2) + " == []", 1500),
        (lambda size: 'device.driver == "' + "a" * size, 100),
        (lambda size: "!" * size + "true", 100),
        (lambda size: "= " * size, 100),
        (lambda size: "optional.of(1)" + ".optMap(x, x + 1)" * size + ".hasValue()", 2500),
    ],
    ids=["and", "sum", "brackets", "lists in lists", "unterminated", "not", "no tokens", "optional values"],
)
def test_compiling_takes_work_in_proportion_to_the_text(grow: object, most: int) -> None:
    def compiled(size: int) -> int:
        text = grow(size)  # type: ignore[operator]
        return work.lines(lambda: says(text))

    compiled(10)
    small, large = compiled(60), compiled(240)
    assert large < 5 * small + most * 100


@pytest.mark.parametrize("deep", ["(", "[", "!(", "-(", "{1:"])
def test_deep_nesting_is_refused(deep: str) -> None:
    assert "recursion" in str(says(deep * 2000))


def test_deepest_text_that_is_allowed_is_evaluated() -> None:
    assert says("(" * 240 + "true" + ")" * 240) is True
    assert says("[" * 200 + "1" + "]" * 200 + " == []") is False


def test_deepest_chain_is_evaluated_far_down_in_the_stack() -> None:
    selector = compile_selector("optional.of(1)" + ".optMap(x, x + 1)" * 240 + ".hasValue()")

    def below(frames: int) -> bool | str:
        return below(frames - 1) if frames else selector.matches(Variables(DEVICE))

    assert below(500) is True


def test_ten_kibibytes_are_compiled_and_evaluated() -> None:
    text = " || ".join(f'device.driver == "driver-{place}"' for place in range(320))
    assert len(text) > 10_000
    assert says(text) is False


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_exploding_patterns_are_linear(pattern: str) -> None:
    text = f"cel.bind(s, lists.range(20000).map(x, 'a').join(), s.matches({pattern!r}))"
    assert says(text) in {True, False}
