"""What the log says of the flags that a process was given."""

from __future__ import annotations

import logging
import re

import pytest

from policysched.cli import log_setup
from policysched.cli.flags.sections import LogsFlags
from policysched.klog import V1


@pytest.mark.parametrize("url", ["https://me:secret@host/p", "http://secret@host", "http://me:sec/secret@host?a=b"])
def test_password_of_a_url_is_not_logged(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    noting = logging.getLogger("noting")
    monkeypatch.setattr(noting, "log", lambda level, text, *given: lines.append(f"{level == V1} {text % given}"))
    monkeypatch.setattr(log_setup, "log", noting)
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    log_setup.log_as(LogsFlags(), [("prometheus-url", url), ("config", "a@b.yaml")])
    assert len(lines) == 2
    assert re.search(r"prometheus-url=.*host", lines[0])
    assert "secret" not in lines[0]
    assert "a@b.yaml" in lines[1]
