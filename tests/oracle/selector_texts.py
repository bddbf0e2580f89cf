"""Random selectors of devices, well-typed and not, and random devices to ask them about.

A text is grown by type: most of its parts are of the type that is wanted, some are of another one, and some texts are
broken afterwards, a character or a word at a time. No answer depends on the order of a map, which Go leaves open.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

DRIVERS: Final = ("dra.example.com", "gpu.example.org")
NAMES: Final = ("text", "number", "flag", "version", "missing")
Grow = Callable[["Expressions", int], str]


def device(random: Random) -> dict[str, Any]:
    """Return a device as the API has it."""
    attributes: dict[str, Any] = {}
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "text": lambda: {"string": random.choice(["", "abc", "A100-80GB", "é", "10Gi", "a,b", "x" * 64])},
        "number": lambda: {"int": random.choice([0, 1, 5, -7, 42, 2**63 - 1, -(2**63)])},
        "flag": lambda: {"bool": random.random() < 0.5},
        "version": lambda: {"version": random.choice(["1.2.3", "0.0.1-rc.1", "10.20.30+b.1", "2.0.0"])},
    }
    for name, make in kinds.items():
        if random.random() < 0.8:
            domain = random.choice(["", "", "other.example.com/"])
            attributes[domain + name] = make() if random.random() < 0.9 else random.choice(list(kinds.values()))()
    if random.random() < 0.02:
        attributes["broken"] = random.choice([{}, {"version": "1.x"}, {"versions": ["1.0.0", "1.x"]}])
    elif random.random() < 0.05:
        attributes[random.choice(list(kinds))] = random.choice(
            [{"strings": ["abc", "a,b"]}, {"ints": [0, 5]}, {"bools": [True, False]}, {"versions": ["1.2.3"]}]
        )
    capacity = {
        name: {"value": random.choice(["80Gi", "1", "500m", "0", "10G"])}
        for name in ("memory", "cores")
        if random.random() < 0.8
    }
    made: dict[str, Any] = {"driver": random.choice(DRIVERS), "attributes": attributes, "capacity": capacity}
    if random.random() < 0.3:
        made["allowMultipleAllocations"] = random.random() < 0.5
    return made


class Expressions:
    """Grows texts from a source of random numbers."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._variables: list[tuple[str, str]] = []

    def selector(self) -> str:
        """Return a text that may be a selector."""
        self._variables = []
        text = self.of("bool" if self.random.random() < 0.95 else self.kind(), self.random.choice([1, 2, 2, 3, 3, 4]))
        return self._broken(text) if self.random.random() < 0.15 else text

    def kind(self) -> str:
        """Return the name of a type."""
        return self.random.choice(sorted(GROWN))

    def of(self, kind: str, depth: int) -> str:
        """Return an expression that is mostly of a type."""
        if self.random.random() < 0.02:
            kind = self.kind()
        fitting = [name for name, of in self._variables if of == kind]
        if fitting and self.random.random() < 0.4:
            return self.random.choice(fitting)
        if self.random.random() < 0.06 and depth > 0:
            return self._any_kind(kind, depth - 1)
        if depth <= 0:
            return self.random.choice(LITERALS[kind])
        return self.random.choice(GROWN[kind])(self, depth - 1)

    def looped(self, kind: str, element: str, depth: int) -> tuple[str, str]:
        """Return the name of a new variable, and an expression in which it is known."""
        name = self.random.choice(["x", "y", "z"])
        self._variables.append((name, element))
        text = self.of(kind, depth)
        self._variables.pop()
        return name, text

    def _any_kind(self, kind: str, depth: int) -> str:
        pick = self.random.randrange(6)
        if pick == 0:
            return f"dyn({self.of(self.kind(), depth)})"
        if pick == 1:
            name, text = self.looped(kind, other := self.kind(), depth)
            return f"cel.bind({name}, {self.of(other, depth)}, {text})"
        if pick == 2:
            return f"({self.of('bool', depth)} ? {self.of(kind, depth)} : {self.of(kind, depth)})"
        if pick == 3:
            return (
                f"optional.of({self.of(kind, depth)}).{self.random.choice(['value()', f'orValue({self.of(kind, 0)})'])}"
            )
        if pick == 4:
            return f"[{self.of(kind, depth)}, {self.of(kind, 0)}][{self.random.choice(['0', '1', '2', '-1', '0u'])}]"
        return attribute(self, depth)

    def _broken(self, text: str) -> str:
        place = self.random.randrange(len(text))
        pick = self.random.randrange(5)
        if pick == 0:
            return text[:place] + text[place + 1 :]
        if pick == 1:
            return text[:place]
        if pick == 2:
            return text[:place] + self.random.choice(BREAKING) + text[place:]
        if pick == 3:
            other = self.random.randrange(len(text))
            low, high = sorted((place, other))
            return text[:low] + text[high:]
        return text.replace(*self.random.choice(EXCHANGED), 1)


BREAKING: Final[tuple[str, ...]] = (
    *"()[]{}.,?:!-+*/%&|=x\"'`$@#\\\t",
    *("==", "&&", "||", "in", "true", "null", "for", "1", "1u", "1.5"),
)
EXCHANGED: Final[tuple[tuple[str, str], ...]] = (
    ("device", "devise"),
    ("attributes", "attribute"),
    ("==", "="),
    ("&&", "&"),
    ("(", "(("),
    (")", ""),
    ('"', "'"),
    ("size", "length"),
    (".", ".."),
    ("[", "[?"),
    ("true", "True"),
    (" ", "\n"),
    ("exists", "all"),
    ("1", "1.0"),
    ("driver", "Driver"),
    ("x", "y"),
)


def attribute(grown: Expressions, _: int) -> str:
    """Read an attribute of the device."""
    domain = grown.random.choice([*DRIVERS, "other.example.com", "nope"])
    name = grown.random.choice(NAMES)
    pick = grown.random.randrange(6)
    whole = f'device.attributes["{domain}"]'
    if pick == 0:
        return f"{whole}.?{name}.orValue({grown.of(grown.kind(), 0)})"
    if pick == 1:
        return f'{whole}["{name}"]'
    return f"{whole}.{name}"


def calls(*patterns: str) -> list[Grow]:
    """Make growers of patterns, in which `{kind}` stands for an expression and `{kind|name}` for a loop's body."""
    return [_call(pattern) for pattern in patterns]


def _call(pattern: str) -> Grow:
    def grow(grown: Expressions, depth: int) -> str:
        made, name = [], ""
        for place, part in enumerate(pattern.replace("}", "{").split("{")):
            if place % 2 == 0:
                made.append(part)
                continue
            kind, _, element = part.partition("|")
            if element:
                name, text = grown.looped(kind, element, depth)
                made.append(f"{name}, {text}")
            else:
                made.append(grown.of(kind, depth))
        return "".join(made)

    return grow


LITERALS: Final[dict[str, list[str]]] = {
    "bool": ["true", "false", "device.allowMultipleAllocations", "has(device.driver)"],
    "int": ["0", "1", "-1", "2", "7", "9223372036854775807", "-9223372036854775808", "0x1F"],
    "uint": ["0u", "1u", "18446744073709551615u", "0xFFu"],
    "double": ["0.0", "1.5", "-2.5e3", "1e308", ".5", "1.0"],
    "string": [
        '""',
        '"a"',
        "'abc'",
        '"a,b,c"',
        "device.driver",
        r'"\u00e9\n"',
        'r"\\d"',
        '"1.2.3"',
        '"80Gi"',
        '"A100"',
    ],
    "bytes": ['b""', 'b"abc"', r'b"\xff\000"'],
    "list": ["[]", "[1, 2, 3]", "[3, 1, 2]", "lists.range(4)", "[1]"],
    "strings": ["[]", '["a", "b"]', '["b", "a", "b"]', '"a,b".split(",")'],
    "map": ["{}", '{"a": 1}'],
    "timestamp": [
        'timestamp("2009-02-13T23:31:30Z")',
        "timestamp(0)",
        'timestamp("2024-02-29T12:00:00.123456789+05:30")',
    ],
    "duration": ['duration("1h")', 'duration("-1.5s")', 'duration("0")', 'duration("100ms")', 'duration("1us")'],
    "quantity": [
        'quantity("80Gi")',
        'quantity("1")',
        'quantity("500m")',
        'quantity("-2k")',
        "device.capacity[device.driver].memory",
    ],
    "semver": ['semver("1.2.3")', 'semver("2.0.0-rc.1")', 'semver("v1.2", true)'],
    "ip": ['ip("10.0.0.1")', 'ip("::1")', 'ip("fe80::1")', 'ip("224.0.0.5")'],
    "cidr": ['cidr("10.0.0.0/8")', 'cidr("2001:db8::/32")', 'cidr("10.1.2.3/16")'],
    "url": ['url("https://a.example:80/b%20c?d=e&d=f#g")', 'url("/x/y")', 'url("http://[::1]/")'],
    "optional": ["optional.none()", "optional.of(1)", '{"a": 1}.?a', "[1, 2][?1]", "[1, 2].first()"],
    "format": [
        "format.dns1123Label()",
        "format.uuid()",
        "format.date()",
        'format.named("uri").value()',
        "format.labelValue()",
    ],
    "type": ["int", "string", "type(1)", "type(device.driver)", "bool", "list", "google.protobuf.Duration"],
    "null": ["null"],
}
_COMPARED: Final = ("int", "uint", "double", "string", "bytes", "timestamp", "duration", "bool")
GROWN: Final[dict[str, list[Grow]]] = {
    "bool": [
        *calls(
            "{bool} && {bool}",
            "{bool} || {bool}",
            "!{bool}",
            "{bool} ? {bool} : {bool}",
            "({bool})",
            *(f"{{{kind}}} == {{{kind}}}" for kind in LITERALS),
            *(f"{{{kind}}} != {{{kind}}}" for kind in LITERALS),
            *(f"{{{kind}}} {sign} {{{kind}}}" for kind in _COMPARED for sign in ("<", ">=")),
            "{int} < {double}",
            "{uint} >= {int}",
            "{double} <= {uint}",
            "dyn({int}) == {double}",
            "{int} in {list}",
            "{string} in {strings}",
            "{string} in {map}",
            "{string} in device.attributes",
            "{int} in [1, 2, 3]",
            "{list}.exists({bool|int})",
            "{list}.all({bool|int})",
            "{list}.exists_one({bool|int})",
            "{strings}.exists({bool|string})",
            "{strings}.all({bool|string})",
            "{list}.exists(i, {bool|int})",
            "{list}.all(i, {bool|int})",
            "{string}.startsWith({string})",
            "{string}.endsWith({string})",
            "{string}.contains({string})",
            '{string}.matches("^a.*[0-9]+$")',
            "{string}.matches({string})",
            "matches({string}, {string})",
            "isQuantity({string})",
            "isSemver({string})",
            "isSemver({string}, {bool})",
            "isIP({string})",
            "isCIDR({string})",
            "isURL({string})",
            "ip.isCanonical({string})",
            "bool({string})",
            "{quantity}.isGreaterThan({quantity})",
            "{quantity}.isLessThan({quantity})",
            "{quantity}.isInteger()",
            "{semver}.isGreaterThan({semver})",
            "{semver}.isLessThan({semver})",
            "{optional}.hasValue()",
            "{cidr}.containsIP({ip})",
            "{cidr}.containsIP({string})",
            "{cidr}.containsCIDR({cidr})",
            "{ip}.isLoopback()",
            "{cidr}.containsCIDR({string})",
            "{ip}.isGlobalUnicast()",
            "{ip}.isLinkLocalUnicast()",
            "{ip}.isUnspecified()",
            "{ip}.isLinkLocalMulticast()",
            "sets.contains({list}, {list})",
            "sets.intersects({list}, {list})",
            "sets.equivalent({strings}, {strings})",
            "{list}.isSorted()",
            "{strings}.isSorted()",
            "{strings}.includes({string})",
            "{format}.validate({string}).hasValue()",
            "has({map}.a)",
            "has(device.attributes[{string}].text)",
            "{string} in [{string}, {string}]",
            "dyn({bool})",
            "optional.ofNonZeroValue({string}).hasValue()",
        ),
        *(
            lambda grown, depth, sign=sign, kind=kind: f"{attribute(grown, depth)} {sign} {grown.of(kind, depth)}"
            for sign in ("==", "!=", "<", ">=")
            for kind in ("int", "string", "bool", "semver")
        ),
        *(
            lambda grown, depth, form=form: form.format(attribute(grown, depth), grown.of("string", depth))
            for form in ("{0}.includes({1})", "{1} in {0}", "{0}.exists(x, x == {1})", "size({0}) > 1", "{0}[0] == {1}")
        ),
        attribute,
    ],
    "int": calls(
        "{int} + {int}",
        "{int} - {int}",
        "{int} * {int}",
        "{int} / {int}",
        "{int} % {int}",
        "-{int}",
        "int({double})",
        "int({uint})",
        "int({string})",
        "int({timestamp})",
        "int({duration})",
        "size({string})",
        "{string}.size()",
        "{list}.size()",
        "{map}.size()",
        "{bytes}.size()",
        "{list}[{int}]",
        "{list}.sum()",
        "{list}.max()",
        "{list}.min()",
        "{string}.indexOf({string})",
        "{string}.indexOf({string}, {int})",
        "{string}.lastIndexOf({string})",
        "{string}.lastIndexOf({string}, {int})",
        "{list}.indexOf({int})",
        "{list}.lastIndexOf({int})",
        "{quantity}.compareTo({quantity})",
        "{quantity}.asInteger()",
        "sign({quantity})",
        "{semver}.compareTo({semver})",
        "{semver}.major()",
        "{semver}.minor()",
        "{semver}.patch()",
        "{ip}.family()",
        "{cidr}.prefixLength()",
        "{timestamp}.getFullYear()",
        "{timestamp}.getMonth()",
        "{timestamp}.getDayOfYear()",
        "{timestamp}.getDayOfMonth()",
        "{timestamp}.getDate()",
        "{timestamp}.getDayOfWeek()",
        "{timestamp}.getHours()",
        "{timestamp}.getMinutes()",
        "{timestamp}.getSeconds()",
        "{timestamp}.getMilliseconds()",
        '{timestamp}.getHours("America/New_York")',
        '{timestamp}.getDate("-05:30")',
        "{timestamp}.getMinutes({string})",
        "{duration}.getHours()",
        "{duration}.getMinutes()",
        "{duration}.getSeconds()",
        "{duration}.getMilliseconds()",
        "{optional}.orValue({int})",
        "{optional}.value()",
        '{map}["a"]',
        "{map}[{string}]",
        "{map}.a",
        "{map}.?a.orValue({int})",
        "{list}[?{int}].orValue({int})",
    ),
    "uint": calls(
        "{uint} + {uint}",
        "{uint} - {uint}",
        "{uint} * {uint}",
        "{uint} / {uint}",
        "{uint} % {uint}",
        "uint({int})",
        "uint({double})",
        "uint({string})",
    ),
    "double": calls(
        "{double} + {double}",
        "{double} - {double}",
        "{double} * {double}",
        "{double} / {double}",
        "-{double}",
        "double({int})",
        "double({uint})",
        "double({string})",
        "{quantity}.asApproximateFloat()",
    ),
    "string": calls(
        "{string} + {string}",
        "string({int})",
        "string({uint})",
        "string({double})",
        "string({bool})",
        "string({bytes})",
        "string({timestamp})",
        "string({duration})",
        "string({type})",
        "string({ip})",
        "string({cidr})",
        "{string}.lowerAscii()",
        "{string}.upperAscii()",
        "{string}.trim()",
        "{string}.charAt({int})",
        "{string}.substring({int})",
        "{string}.substring({int}, {int})",
        "{string}.replace({string}, {string})",
        "{string}.replace({string}, {string}, {int})",
        "{strings}.join()",
        "{strings}.join({string})",
        "{strings}[{int}]",
        '{string}.find("[a-c]+")',
        "{string}.find({string})",
        "strings.quote({string})",
        '"%s:%d".format([{string}, {int}])',
        '"%s".format([{list}])',
        '"%s %s".format([{bool}, {double}])',
        '"%.2f|%x|%o".format([{double}, {string}, {int}])',
        '"%X|%b".format([{int}, {int}])',
        '"%s".format([{map}])',
        '"%d".format([{string}])',
        "{string}.format([{int}])",
        '"%s".format([{timestamp}])',
        '"%s".format([[{duration}]])',
        '"%e".format([{double}])',
        "{url}.getHost()",
        "{url}.getScheme()",
        "{url}.getPort()",
        "{url}.getHostname()",
        "{url}.getEscapedPath()",
        '"%s".format([{type}])',
        '"%s".format([{bytes}])',
    ),
    "bytes": calls("{bytes} + {bytes}", "bytes({string})"),
    "list": calls(
        "{list} + {list}",
        "[{int}, {int}]",
        "{list}.map({int|int})",
        "{list}.filter({bool|int})",
        "{list}.map({int|int})",
        "{list}.sort()",
        "{list}.sortBy({int|int})",
        "{list}.reverse()",
        "{list}.distinct()",
        "{list}.slice({int}, {int})",
        "[{list}, {list}].flatten()",
        "{list}.transformList(i, {int|int})",
        "{strings}.map({int|string})",
        "[?{optional}, {int}]",
        "[{optional}, {optional}].unwrapOpt()",
    ),
    "strings": calls(
        "{strings} + {strings}",
        "[{string}, {string}]",
        "{string}.split({string})",
        "{string}.split({string}, {int})",
        "{list}.map({string|int})",
        "{strings}.sort()",
        "{strings}.distinct()",
        '{string}.findAll("[a-c]")',
        "{string}.findAll({string}, {int})",
        "{format}.validate({string}).orValue({strings})",
        "{strings}.reverse()",
    ),
    "map": [
        lambda grown, depth: f'{{"a": {grown.of("int", depth)}, {grown.of("string", 0)}: {grown.of("int", depth)}}}',
        lambda grown, depth: f"{{{grown.of('string', depth)}: {grown.of('int', depth)}}}",
        lambda grown, depth: f'{{?"a": {grown.of("optional", depth)}}}',
        *calls("{map}.transformMap(k, {int|int})"),
    ],
    "timestamp": calls(
        "{timestamp} + {duration}",
        "{duration} + {timestamp}",
        "{timestamp} - {duration}",
        "timestamp({int})",
        "timestamp({string})",
    ),
    "duration": calls(
        "{duration} + {duration}",
        "{duration} - {duration}",
        "{timestamp} - {timestamp}",
        "-{duration}",
        "duration({string})",
    ),
    "quantity": calls(
        "{quantity}.add({quantity})",
        "{quantity}.add({int})",
        "{quantity}.sub({quantity})",
        "quantity({string})",
        'device.capacity["dra.example.com"].memory',
        "device.capacity[device.driver].cores",
    ),
    "semver": [*calls("semver({string})", "semver({string}, {bool})"), attribute],
    "ip": calls("ip({string})", "{cidr}.ip()"),
    "cidr": calls("cidr({string})", "{cidr}.masked()"),
    "url": calls("url({string})"),
    "optional": calls(
        "optional.of({int})",
        "{optional}.or({optional})",
        "{map}.?a",
        "{map}[?{string}]",
        "{list}[?{int}]",
        "{optional}.optMap({int|int})",
        "optional.ofNonZeroValue({int})",
        "{list}.last()",
    ),
    "format": calls("format.named({string}).value()"),
    "type": calls(*(f"type({{{kind}}})" for kind in LITERALS)),
    "null": calls("null"),
}
