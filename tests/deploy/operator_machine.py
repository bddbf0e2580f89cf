"""The machine of somebody who follows the pages for operators: a clone, kubectl, helm and substitutes.

`docker` builds nothing: it records the images that were pushed. `sudo` maps /etc/kubernetes to a folder.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path
from typing import Final

from tests.controlplane.build import binary
from tests.controlplane.plane import ControlPlane
from tests.deploy.build import helm
from tools.documents.markdown import ROOT, blocks_of

PAGE: Final = ROOT / "docs" / "run" / "install.md"
PROGRAMS: Final = ("kubectl", "helm", "sed", "docker", "sudo", "make", "openssl")
ETC: Final = "/etc/kubernetes"
DOCKER: Final = """#!/bin/sh -e
cd "$(dirname "$0")"
case "$*" in
"build -t "*" .") echo "$3" >> built ;;
"buildx build --platform linux/amd64,linux/arm64 -t "*" --push .") echo "$6" >> pushed ;;
"push "*) grep -qxF "$2" built; echo "$2" >> pushed ;;
*) echo "unknown command: $*"; exit 1 ;;
esac
"""
SUDO: Final = """#!/bin/sh -e
for word; do
    shift
    case "$word" in /etc/kubernetes/*) word="HOST$word" ;; esac
    set -- "$@" "$word"
done
exec "$@"
"""


def commands(title: str, page: Path = PAGE) -> list[str]:
    """Return the commands of a section that a cluster, a registry or a node sees, as the page has them."""
    parts = re.split(r"^##+ +", page.read_text("utf-8"), flags=re.MULTILINE)
    [text] = [part for part in parts if part.splitlines()[0] == title]
    lines = "".join(block.text for block in blocks_of(text) if block.kind == "sh").replace("\\\n", " ").splitlines()
    found = [line for line in lines if line.split()[0] in PROGRAMS]
    assert found, title
    return found


class Operator:
    """Somebody who follows the page, in a clone, with an administrator's kubeconfig."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._programs, self.folder, self.host = folder / "bin", folder / "clone", folder / "host"
        self._programs.mkdir()
        for name, program in (("kubectl", binary("kubectl")), ("helm", helm())):
            (self._programs / name).symlink_to(program)
        for name, text in (("docker", DOCKER), ("sudo", SUDO.replace("HOST", str(self.host)))):
            (self._programs / name).write_text(text)
            (self._programs / name).chmod(0o755)
        self.folder.mkdir()
        shutil.copy(ROOT / "Makefile", self.folder)
        for name in ("deploy", "crds"):
            shutil.copytree(ROOT / name, self.folder / name, symlinks=True)  # the pages edit files
        for block in blocks_of(PAGE.read_text("utf-8")):
            for word in block.words:
                if word.startswith("file="):
                    (self.folder / word.removeprefix("file=")).write_text(block.text)
        path = f"{self._programs}:{os.environ['PATH']}"
        self._environment = os.environ | {"PATH": path, "KUBECONFIG": str(plane.kubeconfig()), "HOME": str(folder)}

    def pushed(self) -> set[str]:
        """Return the images in the registry."""
        return set((self._programs / "pushed").read_text("utf-8").splitlines())

    def on_host(self, path: str) -> Path:
        """Return the place of a file below /etc/kubernetes of the control plane node."""
        found = self.host / ETC.lstrip("/") / path
        found.parent.mkdir(parents=True, exist_ok=True)
        return found

    async def follows(self, title: str, page: Path = PAGE) -> str:
        """Run the commands of a section, each of which must succeed, and return their output."""
        return "".join([await self.runs(command) for command in commands(title, page)])

    async def runs(self, command: str) -> str:
        """Run a command that must succeed, and return its output."""
        process = await asyncio.create_subprocess_exec(
            "sh", "-ec", command,
            cwd=self.folder, env=self._environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await asyncio.wait_for(process.communicate(), 120)
        assert process.returncode == 0, f"{command}: {output.decode()}"
        return output.decode()
