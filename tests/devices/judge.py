"""Kubernetes' own allocator as a program: it answers cases, and tells those of its own tests.

It is built from k8s.io/dynamic-resource-allocation of a release, inside a copy of the module, because its
table tests are internal there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.controlplane.golang import (
    BuildError,
    alone,
    cache_root,
    find_go,
    go_build,
    keep_latest,
    link_flags,
    program_folder,
)
from tests.controlplane.modules import ORACLE, staging_version
from tests.controlplane.releases import Release
from tests.devices.playing import Case

MODULE: Final = "k8s.io/dynamic-resource-allocation"
PACKAGE: Final = "structured/internal/judge"
SOURCES: Final = Path(__file__).resolve().parent / "golang"
KEPT: Final = 2
"""How many programs stay: those of the sources that were used last."""


def program(release: Release) -> Path:
    """Give the path of the judge of a release, building it if its source has changed.

    Raises:
        BuildError: Go or a module is missing, or the build fails.
    """
    source = b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))
    digest = hashlib.sha256(link_flags(release).encode() + source).hexdigest()[:16]
    made = program_folder(release) / f"allocator-{digest}"
    if not made.exists():
        with alone("allocator"), tempfile.TemporaryDirectory(dir=cache_root()) as folder:
            copy = Path(folder) / "module"
            shutil.copytree(_module(release), copy, copy_function=shutil.copyfile)
            for path in (copy, *(one for one in copy.rglob("*") if one.is_dir())):
                path.chmod(0o755)
            shutil.copytree(SOURCES, copy / PACKAGE)
            go_build(copy, f"./{PACKAGE}", made, tests=True, release=release)
    made.touch()
    keep_latest("allocator-*", KEPT, release)
    return made


def _module(release: Release) -> Path:
    """Return the folder of a release's module in Go's cache, fetched if it is not there."""
    version = staging_version(release.version)
    with tempfile.TemporaryDirectory() as nowhere:
        done = subprocess.run(
            [str(find_go(release.go)), "mod", "download", "-json", f"{MODULE}@{version}"],
            cwd=nowhere,
            env=os.environ | {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise BuildError(f"cannot fetch {MODULE}@{version}:\n{done.stdout}{done.stderr}")
    found = json.loads(done.stdout)
    known = release.mod_file(ORACLE).with_suffix(".sum").read_text("utf-8").splitlines()
    if f"{MODULE} {version} {found['Sum']}" not in known:
        raise BuildError(
            f"{MODULE}@{version} has the checksum {found['Sum']}, which is not that of the oracle's module"
        )
    return Path(found["Dir"])


def tables(into: Path, release: Release) -> list[dict[str, Any]]:
    """Run the allocator's own tests, and return each case with what the allocator answered.

    Args:
        into: a folder to work in.
        release: the release of the allocator.

    Raises:
        AssertionError: the tests fail.
    """
    told = into / "tables.jsonl"
    done = subprocess.run(
        [program(release), "-test.count=1"],
        cwd=into,
        env=os.environ | {"POLICYSCHED_TABLES": str(told)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return [json.loads(line) for line in told.read_text("utf-8").splitlines()]


class Judge:
    """A running judge: one question is on its way at a time.

    Attributes:
        release: The Kubernetes release of the allocator.
    """

    def __init__(self, process: subprocess.Popen[str], release: Release) -> None:
        self._process = process
        self.release = release

    def ask(self, case: Case) -> list[dict[str, Any]]:
        """Return what Kubernetes' allocator says of each node of a case."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the judge refused {json.dumps(case)}"
        answers: list[dict[str, Any]] = json.loads(line)
        return answers


@contextmanager
def judge(release: Release) -> Iterator[Judge]:
    """Run the judge of a release."""
    environment = os.environ | {"POLICYSCHED_SERVE": "1"}
    with subprocess.Popen(
        [program(release)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            yield Judge(process, release)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(10)
