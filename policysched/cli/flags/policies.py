"""Flags of the commands for policy authors: check, test, fmt, convert, explain, example, translate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.flags.base import Flags, completed_by
from policysched.cli.flags.formats import CheckFormat, OutputFormat, TableFormat, TextFormat
from policysched.cli.flags.shared import (
    ClusterAccess,
    ClusterOrLive,
    Config,
    KubeVersion,
    ListOutput,
    Output,
    Plugin,
    PoliciesToTry,
)
from policysched.model.release_choice import AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFlags(Flags):
    """Check policies for errors.

    Checks fields, names and expressions, and the CEL selectors of device classes and resource claims. With --cluster,
    also warns about labels, resources and values that no node or namespace has.

    Example: `policysched check policies/ --cluster live`

    Exit codes: 0 no errors; 1 errors, or warnings with -W; 2 a file or a flag is invalid.
    """

    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files, folders, or - for standard input.")]
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster", metavar="FILE|DIR|live", help="Nodes to check labels and resources against; repeatable."
        ),
    ] = None
    access: ClusterAccess
    feature_gates: Annotated[
        list[str] | None,
        typer.Option(
            "--feature-gates",
            metavar="GATE=BOOL,...",
            help="Feature gates of the scheduler; default: those for placements, if a live cluster serves pod groups.",
        ),
    ] = None
    warnings_as_errors: Annotated[
        bool, typer.Option("--warnings-as-errors", "-W", help="Exit with 1 on warnings too.")
    ] = False
    allow_none: Annotated[bool, typer.Option("--allow-none", help="Accept files without a policy.")] = False
    output: Annotated[CheckFormat, typer.Option("--output", "-o", help="Output format.")] = CheckFormat.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFlags(Flags):
    """Run policy tests.

    Example: `policysched test policies/ --coverage`

    Exit codes: 0 all tests passed; 1 a test failed, coverage is too low, or a change was not noticed; 2 a test, a
    file or a flag is invalid.
    """

    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH", help="Test files or folders; default: the current folder.")
    ] = None
    keyword: Annotated[
        str | None,
        typer.Option(
            "--keyword",
            "-k",
            metavar="EXPR",
            help="Run only tests whose names match: parts of names with and, or, not and brackets.",
        ),
    ] = None
    fail_fast: Annotated[bool, typer.Option("--fail-fast", "-x", help="Stop at the first failed test.")] = False
    coverage: Annotated[bool, typer.Option("--coverage", help="Report the parts of policies that no test reaches.")] = (
        False
    )
    min_coverage: Annotated[
        float | None,
        typer.Option(
            "--min-coverage",
            metavar="PERCENT",
            min=0,
            max=100,
            help="Exit with 1 if coverage is lower; implies --coverage.",
        ),
    ] = None
    mutate: Annotated[bool, typer.Option("--mutate", help="Report small changes to policies that no test notices.")] = (
        False
    )
    mutate_seconds: Annotated[
        float, typer.Option("--mutate-seconds", metavar="SECONDS", min=1, help="Time limit for --mutate.")
    ] = 600
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the results to this file as JUnit XML.")
    ] = None
    watch: Annotated[bool, typer.Option("--watch", help="Run the tests again when a file changes, until Ctrl-C.")] = (
        False
    )
    kube_version: KubeVersion = AUTO
    plugin: Plugin = None
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of test files and exit.")] = False
    output: Output = OutputFormat.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class FmtFlags(Flags):
    """Format the expressions of policies.

    The canonical form uses `and`, `or`, `not` and `→`, one space around operators and no redundant brackets. The rest
    of a file stays as it is, including comments and quotes. With -, standard input is formatted to standard output.
    An expression with a syntax error is reported and not changed.

    Example: `policysched fmt --check policies/`

    Exit codes: 0 success; 1 syntax errors, or with --check a file would change; 2 a file or a flag is invalid.
    """

    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files, folders, or - for standard input.")]
    check: Annotated[bool, typer.Option("--check", help="Change nothing; list the files that would change.")] = False
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; print a unified diff.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertFlags(Flags):
    """Convert policies to another API version.

    Prints the files with the new `apiVersion`. Comments, layout and objects of other kinds stay as they are. The API
    versions have the same fields, so a conversion loses nothing. An unknown API version is an error.

    Example: `policysched convert --write policies/`

    Exit codes: 0 success; 1 with --check, a file would change; 2 a file or a flag is invalid.
    """

    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files, folders, or - for standard input.")]
    output_version: Annotated[
        str,
        typer.Option("--output-version", metavar="VERSION", help="API version to write, with or without its group."),
    ] = "v1beta1"
    write: Annotated[bool, typer.Option("--write", "-w", help="Change the files; print only their names.")] = False
    check: Annotated[bool, typer.Option("--check", help="Change nothing; list the files that would change.")] = False
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; print a unified diff.")] = False
    output: Annotated[
        TextFormat | None,
        typer.Option("--output", "-o", help="Print the objects in this format, without comments; several as a List."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainFlags(Flags):
    """Explain an error or warning code.

    Prints the meaning, the reason, an example and its correction.

    Example: `policysched explain E0301`

    Exit codes: 0 success; 2 unknown code.
    """

    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE",
            help="Code, such as E0301, e301 or 301; default: list all codes.",
            autocompletion=completed_by("policies", "explain"),
        ),
    ] = None
    output: ListOutput = TableFormat.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleFlags(Flags):
    """List the examples that ship with policysched, or write the files of one into a folder.

    Exit codes: 0 listed or written; 2 unknown example, or the folder cannot be used.
    """

    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of an example, such as tutorial or gpu-models; default: list all.",
            autocompletion=completed_by("policies", "example"),
        ),
    ] = None
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder for the files; default: the name of the example.")
    ] = None
    force: Annotated[
        bool,
        typer.Option("--force", help="Write into a folder that is not empty; overwrite files of the same name."),
    ] = False
    output: ListOutput = TableFormat.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateFlags(Flags):
    """Translate the filters of policies into the node affinity of a pod.

    Autoscalers do not evaluate policies. With the printed affinity in the pod, an autoscaler adds nodes that the
    policies can accept. The affinity allows every node that the policies allow, and may allow more; the output lists
    the conditions of policies that node affinity cannot express. The command changes nothing in the cluster.

    With --admission-policies instead of --pod, the command prints a MutatingAdmissionPolicy (Kubernetes 1.36) for each
    filter, which adds the node affinity of the filter to new pods.

    Example: `policysched translate --pod deployment.yaml --policy policies/ --cluster live`

    Exit codes: 0 success, also if the affinity allows nodes that the policies reject; 1 a policy has errors, or with
    --exact the affinity allows such nodes; 2 a file or a flag is invalid.
    """

    pod: Annotated[
        str | None,
        typer.Option("--pod", metavar="FILE", help="Pod or workload; FILE#KIND/NAME chooses one of several."),
    ] = None
    admission_policies: Annotated[
        bool, typer.Option("--admission-policies", help="Print admission policies for new pods.")
    ] = False
    cluster: ClusterOrLive = None
    policy: PoliciesToTry = None
    config: Config = None
    access: ClusterAccess
    exact: Annotated[
        bool, typer.Option("--exact", help="Exit with 1 if the affinity allows nodes that the policies reject.")
    ] = False
    output: Output = OutputFormat.TABLE
