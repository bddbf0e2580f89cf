"""Lines of the log: what klog and component-base write, nothing of anybody's text raw, nothing made in vain."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysched.klog import V1, V2, V3, V5, Block, JsonFormatter, TextFormatter, Verbosity, quoted
from policysched.visible import is_hidden

HEADER = re.compile(r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} [ \d]{7} test_klog\.py:\d+\] ")
Log = tuple[logging.Logger, io.StringIO]


def log_with(formatter: logging.Formatter, level: int = logging.DEBUG) -> Log:
    """A logger of its own, and what it writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    log = logging.Logger("policysched.test", level)
    log.addHandler(handler)
    return log, stream


@pytest.fixture
def verbosity() -> Iterator[None]:
    """The levels are as they were afterwards."""
    loggers = [logging.getLogger(), logging.getLogger("policysched")]
    before = [one.level for one in loggers]
    yield
    for one, level in zip(loggers, before, strict=True):
        one.setLevel(level)


@pytest.mark.parametrize(
    ("level", "text", "arguments", "written"),
    [
        (V2, "Bound", ({"pod": "default/a", "evaluatedNodes": 4},), 'I "Bound" pod="default/a" evaluatedNodes=4'),
        (logging.INFO, "lease %s is held", ("a/b",), "I lease a/b is held"),
        (logging.WARNING, "no", (), "W no"),
        (logging.ERROR, "Failed", ({"err": 'a "b" \\ c\n'},), r'E "Failed" err="a \"b\" \\ c\n"'),
        (V1, "is", ({"on": True, "share": 0.5, "names": ["a", "b"]},), 'I "is" on=true share=0.5 names=["a", "b"]'),
        (V1, "is", ({"config": Block("a: 1\nb:\x1b\n")},), 'I "is" config=<\n\ta: 1\n\tb:\\x1b\n >'),
        (V1, "100 %", ({"a": None},), 'I "100 %" a="None"'),
    ],
)
def test_a_record_is_written_as_klog_does(level: int, text: str, arguments: tuple[object, ...], written: str) -> None:
    log, stream = log_with(TextFormatter())
    log.log(level, text, *arguments)
    line = stream.getvalue()
    assert HEADER.match(line)
    assert line[0] + " " + line.partition("] ")[2] == written + "\n"


def test_a_json_record_has_component_bases_keys() -> None:
    log, stream = log_with(JsonFormatter())
    log.log(V3, "Attempting", {"pod": "default/a", "nodes": 3, "names": ["x"], "more": {"a": 1}})
    log.warning("%s is gone", "it")
    try:
        dict[str, str]()["\u202e"]
    except KeyError:
        log.exception("failed")
    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert [*first] == ["ts", "caller", "msg", "v", "pod", "nodes", "names", "more"]
    assert (first["msg"], first["v"], first["pod"], first["nodes"]) == ("Attempting", 3, "default/a", 3)
    assert re.fullmatch(r"test_klog\.py:\d+", first["caller"])
    assert first["ts"] > 1.6e12
    assert (second["msg"], "v" in second) == ("it is gone", False)
    assert third["err"] == "KeyError('\\u202e')"
    assert "Traceback" in third["stacktrace"]


@given(st.text())
def test_no_text_of_anybody_looks_like_a_record(text: str) -> None:
    for formatter in (TextFormatter(), JsonFormatter()):
        log, stream = log_with(formatter)
        log.log(logging.ERROR, "m", {"pod": text, "err": [text]})
        log.error("%s", text)
        lines = stream.getvalue()
        assert lines.count("\n") == 2
        assert not any(map(is_hidden, lines.replace("\n", "")))


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_quoted_text_reads_back(text: str) -> None:
    assert json.loads(quoted(text)) == text


class Counted(str):
    """A text that counts how often it was formatted."""

    __slots__ = ("formatted",)

    def __str__(self) -> str:
        self.formatted = getattr(self, "formatted", 0) + 1
        return "shown"


def test_below_its_level_nothing_of_a_record_is_formatted() -> None:
    log, stream = log_with(TextFormatter(), logging.INFO - 2)
    value = Counted("x")
    log.log(V3, "m", {"a": value})
    assert (stream.getvalue(), getattr(value, "formatted", 0)) == ("", 0)
    log.log(V2, "m", {"a": value})
    assert value.formatted == 1


@pytest.mark.usefixtures("verbosity")
def test_verbosity_may_change_while_the_process_runs() -> None:
    log = logging.getLogger("policysched.some.module")
    made = Verbosity()
    for level in (0, 2, 5, 1, 100):
        made.use(level)
        assert [log.isEnabledFor(one) for one in (V1, V2, V3, V5)] == [level >= one for one in (1, 2, 3, 5)]
        assert log.isEnabledFor(logging.INFO)


@pytest.mark.usefixtures("verbosity")
def test_modules_have_levels_of_their_own() -> None:
    made = Verbosity(1, [("queue*", 4), ("binding", 0)])
    made.use(1)

    def written(module: str, level: int) -> bool:
        log = logging.getLogger(f"policysched.schedule.{module}")
        record = log.makeRecord(log.name, level, f"/somewhere/{module}.py", 1, "m", (), None)
        return log.isEnabledFor(level) and made.filter(record)

    assert (written("queue_hints", V3), written("queue_hints", V5)) == (True, False)
    assert (written("binding", logging.INFO), written("binding", V1)) == (True, False)
    assert (written("cycle", V1), written("cycle", V2)) == (True, False)
    made.use(2)
    assert written("cycle", V2)
    other = logging.getLogger("aiohttp").makeRecord("aiohttp", logging.WARNING, "/x/binding.py", 1, "m", (), None)
    assert made.filter(other)
