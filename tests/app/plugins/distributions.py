"""Installed distributions with entry points, made of files in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

CLOSED = """
class Closed:
    name = "Closed"

    def __init__(self, args, handle):
        self.made_of = args, handle

    def permit(self, state, pod, node_name):
        return None
"""


class Site:
    """A folder on the path of modules."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name: str, *entries: str, **modules: str) -> None:
        """Install a distribution with entry points, each as `name = module:factory`, and modules."""
        for module, text in modules.items():
            (self.folder / f"{module}.py").write_text(text, "utf-8")
        info = self.folder / f"{name}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n", "utf-8")
        (info / "entry_points.txt").write_text("\n".join(("[policysched.plugins]", *entries, "")), "utf-8")

    def forget(self) -> None:
        """Take what was imported from the folder out of the interpreter."""
        for name, module in [*sys.modules.items()]:
            if str(getattr(module, "__file__", None) or "").startswith(str(self.folder)):
                del sys.modules[name]
