"""The oracle of any version of Kubernetes, and the sources that it was built from.

The Go files of `tests/oracle` are copied into a folder of their own, with a go.mod for the version. They compile with
the build tags of the newest known release that is not newer than the version.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.controlplane.golang import BuildError, cache_root, go_build
from tests.controlplane.modules import download, go_mod_for, published, resolve
from tests.controlplane.releases import RELEASES, Release
from tests.oracle.build import SOURCES
from tests.oracle.ladder.answers import Answer, Ask, Case

VERSION: Final = re.compile(r"v1\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?")
_ERROR: Final = re.compile(r"^\./([\w.]+):\d+:\d+: (.+)$", re.M)


def release_of(version: str) -> Release:
    """Return a version as a release: a known one, or one made from Kubernetes' go.mod.

    Raises:
        BuildError: The module proxy does not have the version.
    """
    known = next((one for one in RELEASES.values() if one.version == version), None)
    if known is not None:
        return known
    newest = RELEASES[max(RELEASES)]
    text = Path(download(newest, version)["GoMod"]).read_text("utf-8")
    found = re.search(r"^go (\d+)\.(\d+)", text, re.M)
    if found is None:
        raise BuildError(f"the go.mod of {version} names no version of Go")
    return Release(version, (int(found[1]), int(found[2])))


def newest_steps(known: Mapping[str, Release] = RELEASES) -> list[tuple[str, str]]:
    """Return the comparisons with versions that are newer than the known ones: old and new version.

    Each known minor is compared with its newest patch, and the last one also with the newest version of a later minor.

    Raises:
        BuildError: The module proxy does not answer.
    """
    return steps_to(published(known[max(known)]), [one.version for one in known.values()])


def steps_to(versions: Iterable[str], known: Sequence[str]) -> list[tuple[str, str]]:
    """Return the comparisons of known versions, the oldest first, with newer ones.

    Args:
        versions: All published versions.
        known: The known versions, one for each minor.
    """
    ordered = sorted(filter(VERSION.fullmatch, versions), key=_order)
    steps = []
    for old in known:
        later = [one for one in ordered if _minor(one) == _minor(old) and _order(one) > _order(old)]
        steps += [(old, later[-1])] if later else []
    beyond = [one for one in ordered if _minor(one) > _minor(known[-1])]
    return [*steps, (known[-1], beyond[-1])] if beyond else steps


def _minor(version: str) -> tuple[int, ...]:
    return _order(version)[:2]


def _order(version: str) -> tuple[int, ...]:
    """Return a key that sorts versions: alpha, beta and release candidates before their release."""
    numbers, _, stage = version.removeprefix("v").partition("-")
    name, _, count = stage.partition(".")
    place = ("alpha", "beta", "rc", "").index(name)
    return (*map(int, numbers.split(".")), place, int(count or 0))


def sources_of(release: Release) -> Path:
    """Return the folder of Kubernetes' sources at a version, fetched if it is missing."""
    return Path(download(release, release.version)["Dir"])


def oracle_of(release: Release) -> Path:
    """Build the oracle at a version.

    Raises:
        BuildError: Dependencies are missing, or the Go files do not compile with that version: the text lists errors by
            file.
    """
    folder = cache_root() / "ladder" / release.version
    program = folder / "oracle"
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for path in SOURCES.glob("*.go"):
        shutil.copyfile(path, folder / path.name)
    kubernetes = Path(download(release, release.version)["GoMod"]).read_text("utf-8")
    own = (SOURCES / "go.mod").read_text("utf-8")
    (folder / "go.mod").write_text(go_mod_for(release, own, kubernetes), "utf-8")
    resolve(release, folder, "go.mod", (".",))
    try:
        go_build(folder, ".", program, release=release)
    except BuildError as error:
        raise BuildError(by_file(str(error))) from error
    return program


def by_file(text: str) -> str:
    """Return Go's compile errors, sorted by file; other texts are returned as they are."""
    errors: dict[str, list[str]] = defaultdict(list)
    for file, message in _ERROR.findall(text):
        errors[file].append(message)
    if not errors:
        return text
    lines = [f"{file}\n" + "\n".join(f"  {message}" for message in found) for file, found in sorted(errors.items())]
    return "these files of tests/oracle do not compile:\n" + "\n".join(lines)


@contextmanager
def running(program: Path) -> Iterator[Ask]:
    """Run an oracle that answers cases."""
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the oracle was started without pipes")
        stdin, stdout = process.stdin, process.stdout

        def ask(case: Case) -> Answer:
            stdin.write(json.dumps(case) + "\n")
            stdin.flush()
            line = stdout.readline()
            if not line:
                raise RuntimeError(f"the oracle ended with exit code {process.wait()}: {json.dumps(case)[:2000]}")
            answer: dict[str, Any] = json.loads(line)
            answer.pop("id", None)
            return answer

        try:
            yield ask
        finally:
            stdin.close()
            process.wait(10)
