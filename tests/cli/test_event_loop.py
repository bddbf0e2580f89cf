"""Running a coroutine for a command."""

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from policysched.cli.collector import uncollected
from policysched.cli.event_loop import serve, wait_for
from policysched.cli.rich_output import working
from policysched.reading.documents import read
from tools.documents.markdown import ROOT


class _Large:
    shown = 0

    def __repr__(self) -> str:
        self.shown += 1
        return "large"


def test_wait_for_never_shows_the_result() -> None:
    """A loop's end writes the text of its main task: of a cluster that would be every object of it, many times."""

    async def read_large() -> _Large:
        return _Large()

    assert wait_for(read_large()).shown == 0


def test_a_documents_text_is_no_part_of_how_it_is_shown() -> None:
    """Each of many objects holds the text of the whole file: what shows them may not repeat it."""
    [document] = read("kind: Node\nmetadata: {name: n1, annotations: {note: long-long-text}}", "f.yaml")
    assert "long-long-text" not in repr(document.source)


HANGING = """
import asyncio, threading
from policysched.cli.event_loop import serve

async def work(stop):
    begun = threading.Event()
    hanging = asyncio.get_running_loop().run_in_executor(None, lambda: (begun.set(), threading.Event().wait()))
    assert begun.wait(30) and not hanging.done()

serve(work)
"""


def test_end_waits_for_no_thread_that_hangs() -> None:
    subprocess.run([sys.executable, "-c", HANGING], check=True, timeout=60)


def test_threads_give_what_they_are_asked_for_and_what_goes_wrong() -> None:
    seen: list[object] = []

    async def work(stop: asyncio.Event) -> None:
        seen.append(await asyncio.to_thread(len, "four"))
        with pytest.raises(ValueError, match="invalid literal"):
            await asyncio.to_thread(int, "x")

    serve(work)
    assert seen == [4]


def test_collecting_goes_on_afterwards() -> None:
    with pytest.raises(KeyError), uncollected():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_work_is_shown_on_a_terminal_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with working("reading"):
        pass
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with working("reading a\x1b[2Jb"):
        pass
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "reading a\\x1b[2Jb" in shown.err


def test_sandbox_ends_while_a_file_hangs_that_it_is_to_load(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "policysched", "sandbox", "--load", str(pipe)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        writer = os.open(pipe, os.O_WRONLY)  # comes back as it is opened to be read
        process.terminate()
        assert process.wait(30) == 0
    os.close(writer)
