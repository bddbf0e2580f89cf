"""The files of a release: wheel, source archive, chart, kustomizations, CRD, SBOM, checksums and notes.

`python -m tools.release DIR` builds all of them into a folder, from the files that git tracks, and publishes nothing.
Two builds of one commit give the same bytes: times, owners, modes and the order of members do not depend on the
machine. `.github/workflows/release.yml` builds them with the same command and publishes them.
"""
