"""`policysched record`: a snapshot of a cluster as a file that other commands read with --cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from policysched.app.checking.check import findings
from policysched.app.dry_run.inputs import LIVE, ClusterSources, gather_cluster
from policysched.app.files.output import replace_privately
from policysched.app.recording.kept_annotations import KIND
from policysched.app.snapshot import snapshot
from policysched.cli.event_loop import wait_for
from policysched.cli.flags.decisions import RecordFlags
from policysched.cli.flags.formats import OutputFormat
from policysched.cli.formats import print_value
from policysched.cli.output import print_left_out, print_text
from policysched.cli.reports import refuse_broken
from policysched.cli.rich_output import working
from policysched.errors import UsageError
from policysched.model.release import DEFAULT


def record(flags: RecordFlags) -> int:
    """Write a snapshot of a cluster; return the exit code."""
    output = flags.output
    with working("reading the cluster"):
        sources = ClusterSources(
            flags.cluster or [LIVE],
            flags.policy or [],
            kubeconfig=flags.access.kubeconfig,
            context=flags.access.context,
            kube_version=DEFAULT.minor,  # a snapshot decides nothing, so the server's version is not read
        )
        inputs = wait_for(gather_cluster(sources))
        refuse_broken(finding for one in inputs.policies for finding in findings(one.object, one))
        made, broken = snapshot(inputs.objects, [one.object for one in inputs.policies])
        _write(made, output)
    for note in inputs.notes:
        print_text(f"note: {note}", stderr=True)
    left_out = (*inputs.left_out, *broken)
    print_left_out(left_out)
    objects = sum(one["kind"] != KIND for one in made["items"])
    print_text(f"{objects:,} objects written to {'standard output' if output == '-' else output}", stderr=True)
    return int(bool(left_out))


def _write(made: dict[str, Any], output: str) -> None:
    if output == "-":
        print_value(made, OutputFormat.YAML)
        return
    path = Path(output)
    try:
        replace_privately(path, _encoded(made, path))
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror}") from error


def _encoded(made: dict[str, Any], path: Path) -> bytes:
    if path.suffix == ".json":
        return msgspec.json.encode(made) + b"\n"
    return yaml.safe_dump(made, sort_keys=False, width=120).encode()
