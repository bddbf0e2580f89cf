"""The image without a container engine: the Dockerfile's own lines, carried out in a folder.

It knows the few instructions that our Dockerfile has. Wheels are fetched once, by the hashes of the lock files, and
kept in the user's cache folder; the build itself has no network.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.controlplane.golang import alone, cache_root

ROOT: Final = Path(__file__).parents[2]
LOCKS: Final = ("requirements.lock", "requirements-build.lock")
PLACES: Final = ("/opt", "/src", "/tmp")  # noqa: S108 - folders of the image
IMAGE_PYTHON: Final = "3.13"


def instructions() -> list[tuple[str, str]]:
    """Give the Dockerfile's instructions with their arguments, lines put together."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines if line)]


def stages() -> list[list[tuple[str, str]]]:
    """Give the instructions of each stage, `FROM` first."""
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


def wheels(machine: str = "") -> Path:
    """Give a folder with the locked wheels, fetched by their hashes if they are not there yet.

    Args:
        machine: what the image runs on; this machine and this Python where it is empty.
    """
    given = b"".join((ROOT / name).read_bytes() for name in LOCKS)
    name = f"{machine or sys.implementation.cache_tag}-{hashlib.sha256(given).hexdigest()[:16]}"
    folder = cache_root() / "wheels" / name
    with alone("wheels"):
        if not folder.exists():
            fresh = folder.with_name(f".{name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            for lock in LOCKS:
                _download(lock, fresh, machine)
            fresh.rename(folder)
    return folder


def _download(lock: str, folder: Path, machine: str) -> None:
    tags = [f"--platform={tag}_{machine}" for tag in ("manylinux_2_28", "manylinux2014", "manylinux_2_17")]
    target = [*tags, f"--python-version={IMAGE_PYTHON}"] if machine else []
    start = [sys.executable, "-m", "pip", "download", "-q", "--require-hashes", "--only-binary=:all:", *target]
    command = [*start, f"--dest={folder}", "-r", str(ROOT / lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass
class Image:
    """What the Dockerfile makes, below a folder."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def path(self, inside: str) -> Path:
        """Give where a path of the image is here."""
        return self.folder / inside.lstrip("/")

    def here(self, text: str) -> str:
        """Give a text with the image's folders as they are called here."""
        return re.sub(rf"(?<![\w./])({'|'.join(PLACES)})\b", lambda match: str(self.path(match[1])), text)

    def run(self, *arguments: str, cwd: Path, under: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run the image with arguments in a folder and its own environment; `under` is a program that starts it."""
        program = shutil.which(self.entry[0], path=self.environment["PATH"])
        assert program is not None
        command = [*under, program, *self.entry[1:], *(arguments or self.command)]
        return subprocess.run(
            command,
            cwd=cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def build(folder: Path) -> Image:
    """Carry out the Dockerfile below a folder; the last stage has only what it copies."""
    first, last = stages()
    building = Image(folder / "build", {"PATH": f"{Path(sys.executable).resolve().parent}:{os.defpath}"})
    made = Image(folder / "image", dict(building.environment))
    # What is imported is compiled then: compiling all that is installed takes most of a build.
    settings = {"NO_INDEX": "1", "FIND_LINKS": str(wheels()), "DISABLE_PIP_VERSION_CHECK": "1", "NO_COMPILE": "1"}
    building.environment |= {f"PIP_{name}": value for name, value in settings.items()}
    for word, rest in first[1:]:
        _build_step(building, word, rest)
    for word, rest in last[1:]:
        _final_step(building, made, word, rest)
    return made


def _build_step(building: Image, word: str, rest: str) -> None:
    place = building.path("/src")
    place.mkdir(parents=True, exist_ok=True)
    if word == "WORKDIR":
        assert rest == "/src"
    elif word == "COPY":
        *names, target = rest.split()
        for name in names:
            _copy(ROOT / name, place / target / ("" if len(names) == 1 and (ROOT / name).is_dir() else name))
    else:
        assert word == "RUN", word
        done = subprocess.run(
            ["sh", "-ec", building.here(rest)],
            cwd=place,
            env=building.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _final_step(building: Image, made: Image, word: str, rest: str) -> None:
    if word == "COPY":
        source, target = rest.removeprefix("--from=build ").split()
        assert source == target, "scripts name the folder that they were installed in"
        # Not copied: the scripts would name another folder here.
        made.folder = building.folder
    elif word == "ENV":
        for pair in rest.split():
            name, _, value = pair.partition("=")
            made.environment[name] = made.here(value).replace("$PATH", made.environment["PATH"])
    elif word in {"ENTRYPOINT", "CMD"}:
        setattr(made, "entry" if word == "ENTRYPOINT" else "command", json.loads(rest))
    else:
        assert word in {"USER", "WORKDIR"}, word


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)
