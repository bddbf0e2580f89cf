from __future__ import annotations

import subprocess
import sys
from typing import NoReturn

import pytest

from policysched import cli
from policysched.errors import ConnectionProblemError, PolicyschedError, UsageError


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("wrong file"), 2, "error: wrong file\n"),
        (PolicyschedError("no luck"), 2, "error: no luck\n"),
        (ConnectionProblemError("two\n  lines"), 2, "error: two lines\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_error_becomes_one_line_and_a_code(
    error: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: list[str]) -> NoReturn:
        raise error

    monkeypatch.setattr(cli, "call", fail)
    with pytest.raises(SystemExit) as end:
        cli.main(["version"])
    assert end.value.code == code
    assert capsys.readouterr().err == message


def test_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise LookupError("a bug")

    monkeypatch.setattr(cli, "make_app", lambda *_: fail)
    with pytest.raises(LookupError):
        cli.execute(["version"])


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "policysched", "version", "--nope"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.splitlines()[0]) == (2, "error: no such option: --nope")


@pytest.mark.parametrize("closed", [">&-", "<&-", ">&- 2>&- <&-"])
def test_streams_may_be_closed(closed: str) -> None:
    command = f"{sys.executable} -m policysched plugins {closed}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
