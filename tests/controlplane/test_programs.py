from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.programs import Program, ProgramError, Warden, free_port
from tests.controlplane.warden import end


@pytest.fixture
def warden(tmp_path: Path) -> Iterator[Warden]:
    made = Warden(tmp_path / "data")
    yield made
    made.dismiss()


def there(number: int) -> bool:
    """Whether a process is there and not only a remainder."""
    try:
        return " Z " not in Path(f"/proc/{number}/stat").read_text("utf-8")
    except FileNotFoundError:
        return False


def gone(*numbers: int) -> bool:
    deadline = time.monotonic() + 10
    while any(map(there, numbers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(there, numbers))


def test_ports_differ_and_are_free() -> None:
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20
    for port in ports:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_program_that_ends_shows_its_log(tmp_path: Path, warden: Warden) -> None:
    program = Program("etcd", ["sh", "-c", "echo no such flag; exit 3"], tmp_path / "log", warden)
    program.start()
    with pytest.raises(ProgramError, match=r"(?s)etcd ended with code 3:.*no such flag"):
        program.wait(lambda: False)
    program.stop()


def test_program_that_takes_too_long_shows_its_log(tmp_path: Path, warden: Warden) -> None:
    program = Program("etcd", ["sh", "-c", "echo waiting; exec sleep 60"], tmp_path / "log", warden)
    program.start()
    program.wait(lambda: "waiting" in program.told())
    with pytest.raises(ProgramError, match=r"(?s)etcd is not ready after 0 s:.*waiting"):
        program.wait(lambda: False, 0.1)
    program.stop()
    assert not program.running


def test_program_can_be_started_again(tmp_path: Path, warden: Warden) -> None:
    program = Program("etcd", ["sh", "-c", "echo begin; exec sleep 60"], tmp_path / "log", warden)
    for count in (1, 2):
        program.start()
        program.wait(lambda count=count: program.told().count("begin") == count)  # type: ignore[misc]
        assert program.running
        program.stop()
        assert not program.running


def test_warden_ends_what_a_killed_process_leaves(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    script = f"""if 1:
        import time
        from pathlib import Path
        from tests.controlplane.programs import Program, Warden
        warden = Warden(Path({str(data)!r}))
        for name in "ab":
            program = Program(name, ["sleep", "60"], Path({str(data)!r}) / name, warden)
            program.start()
            print(program._process.pid, flush=True)
        time.sleep(60)
    """
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=root) as parent:
        assert parent.stdout is not None
        numbers = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(map(there, numbers))
        parent.kill()
    assert gone(*numbers)
    deadline = time.monotonic() + 10
    while data.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not data.exists()


def test_warden_kills_what_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.controlplane.warden.PATIENCE", 0.2)
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        end([process.pid])
        assert process.wait(10) == -signal.SIGKILL


def test_warden_passes_over_what_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    end([process.pid])
