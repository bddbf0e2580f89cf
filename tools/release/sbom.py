"""The bill of materials of a release as SPDX 2.3: the wheel and the locked packages that the image installs with it."""

from __future__ import annotations

import datetime
import hashlib
import re
from pathlib import Path
from typing import Final

from packaging.markers import Marker
from spdx_tools.spdx.model.actor import Actor, ActorType
from spdx_tools.spdx.model.checksum import Checksum, ChecksumAlgorithm
from spdx_tools.spdx.model.document import CreationInfo, Document
from spdx_tools.spdx.model.package import ExternalPackageRef, ExternalPackageRefCategory, Package, PackagePurpose
from spdx_tools.spdx.model.relationship import Relationship, RelationshipType
from spdx_tools.spdx.model.spdx_no_assertion import SpdxNoAssertion
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
from spdx_tools.spdx.writer.json.json_writer import write_document_to_file

from tools.release.checking import ReleaseError

SOURCE: Final = "https://github.com/policysched/policysched"
IMAGE: Final = {
    "python_version": "3.13",
    "python_full_version": "3.13.0",
    "sys_platform": "linux",
    "platform_system": "Linux",
}
"""Values of the environment markers in the image, to evaluate the lock file."""
_LOCKED: Final = re.compile(r"^([\w.-]+)==(\S+?)(?: ; (.*?))? \\$", re.MULTILINE)


def locked_packages(lock: str) -> dict[str, str]:
    """Return the versions of the packages that a lock file installs in the image."""
    return {
        name: version
        for name, version, marker in _LOCKED.findall(lock)
        if not marker or Marker(marker).evaluate(dict(IMAGE))
    }


def write_sbom(target: Path, wheel: Path, version: str, lock: str, seconds: int) -> None:
    """Write the bill of materials of a wheel and of a lock file.

    Raises:
        ReleaseError: it is not valid SPDX.
    """
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    main = _package("policysched", version, Checksum(ChecksumAlgorithm.SHA256, digest))
    main.primary_package_purpose = PackagePurpose.APPLICATION
    others = [_package(name, found) for name, found in sorted(locked_packages(lock).items())]
    info = CreationInfo(
        spdx_version="SPDX-2.3",
        spdx_id="SPDXRef-DOCUMENT",
        name=f"policysched-{version}",
        document_namespace=f"{SOURCE}/spdx/{version}/{digest}",
        creators=[Actor(ActorType.TOOL, f"policysched-tools.release-{version}")],
        created=datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None),
    )
    links = [Relationship(info.spdx_id, RelationshipType.DESCRIBES, main.spdx_id)]
    links += [Relationship(main.spdx_id, RelationshipType.DEPENDS_ON, one.spdx_id) for one in others]
    document = Document(info, packages=[main, *others], relationships=links)
    if problems := validate_full_spdx_document(document):
        raise ReleaseError(f"{target.name}: {problems[0].validation_message}")
    write_document_to_file(document, str(target), validate=False)


def _package(name: str, version: str, *checksums: Checksum) -> Package:
    """Return the SPDX entry of a Python package; its purl is the package's address on PyPI."""
    purl = f"pkg:pypi/{name}@{version}"
    return Package(
        spdx_id=f"SPDXRef-{re.sub(r'[^A-Za-z0-9.]', '-', name)}",
        name=name,
        download_location=SpdxNoAssertion(),
        version=version,
        files_analyzed=False,
        checksums=list(checksums),
        external_references=[ExternalPackageRef(ExternalPackageRefCategory.PACKAGE_MANAGER, "purl", purl)],
    )
