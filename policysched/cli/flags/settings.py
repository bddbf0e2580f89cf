"""Flags of the commands that set up a scheduler, and of `version` and `help`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.flags.base import Flags, completed_by
from policysched.cli.flags.formats import TableFormat, TextFormat
from policysched.cli.flags.shared import KubeVersion, ListOutput, Plugin, TextOutput
from policysched.model.release_choice import AUTO


class Shell(enum.StrEnum):
    """A shell for which `policysched completion` prints a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrdFlags(Flags):
    """Print the CustomResourceDefinition of SchedulingPolicy for this version.

    Example: `policysched crd | kubectl apply -f -`

    Exit codes: 0 success.
    """

    output: TextOutput = TextFormat.YAML


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigViewFlags(Flags):
    """Print a configuration with all defaults, as the scheduler uses it.

    Exit codes: 0 success; 2 the configuration, a file or a flag is invalid.
    """

    config: Annotated[str, typer.Option("--config", metavar="FILE", help="KubeSchedulerConfiguration file.")]
    kube_version: KubeVersion = AUTO
    plugin: Plugin = None
    output: TextOutput = TextFormat.YAML


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigCheckFlags(Flags):
    """Check configurations for everything that kube-scheduler rejects.

    Exit codes: 0 no errors; 1 errors in a configuration; 2 a file or a flag is invalid.
    """

    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files, folders, or - for standard input.")]
    kube_version: KubeVersion = AUTO
    plugin: Plugin = None
    output: ListOutput = TableFormat.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginsFlags(Flags):
    """List the plugins that a configuration can enable.

    Lists the default plugins, the plugins of installed packages, and those of --plugin. With --config and --measure,
    also prints the CPU time of the plugins that the configuration enables.

    Exit codes: 0 all plugins can be enabled; 1 a plugin cannot be enabled; 2 a flag is invalid.
    """

    kube_version: KubeVersion = AUTO
    plugin: Plugin = None
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="KubeSchedulerConfiguration with the plugins to measure.",
        ),
    ] = None
    measure: Annotated[
        int | None,
        typer.Option(
            "--measure",
            metavar="NODES",
            min=1,
            max=50_000,
            help="Measure the CPU time per decision on this number of nodes.",
        ),
    ] = None
    output: ListOutput = TableFormat.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginNewFlags(Flags):
    """Create the Python package of a plugin.

    The package has a module, a test, a configuration and a README. The command prints the next steps.

    Exit codes: 0 success; 2 the name, a point or the folder is invalid.
    """

    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the plugin in configurations.")]
    points: Annotated[
        str,
        typer.Option(
            "--points", metavar="POINT,...", help="Extension points to implement, such as preFilter, filter or score."
        ),
    ] = "filter,score"
    parent: Annotated[
        Path,
        typer.Option(
            "--in",
            metavar="DIR",
            file_okay=False,
            help="Folder in which to create the package folder; default: the current folder.",
        ),
    ] = Path()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionFlags(Flags):
    """Print the completion script of a shell.

    To enable completion in the current shell, run `source <(policysched completion bash)`.

    Exit codes: 0 success; 2 unknown shell.
    """

    shell: Annotated[Shell, typer.Argument(help="Shell.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFlags(Flags):
    """Print the version; as JSON or YAML, also the Kubernetes releases that policysched reproduces.

    Exit codes: 0 success.
    """

    output: ListOutput = TableFormat.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpFlags(Flags):
    """Print the help of a command, like --help.

    Exit codes: 0 success; 2 unknown command.
    """

    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="Command, such as plan or config view.",
            autocompletion=completed_by("settings", "help"),
        ),
    ] = None
