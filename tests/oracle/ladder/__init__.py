"""Compares kube-scheduler's decisions at two versions of Kubernetes, to find what a new version changes.

`python -m tests.oracle.ladder v1.37.2` compares that version with the default one, and `newest`
the known versions with all newer ones. Modules, lowest first:

- `programs`: builds the oracle of any version.
- `sources`: what changed in Kubernetes' sources: feature gates, files of the scheduler.
- `answers`: how two answers to one case differ, without names and numbers of the case.
- `causes`: the smallest case for a difference, and the field of the case that causes it.
- `classes`: all differences of many cases, sorted by cause.
- `summary`: the result as it is stored for the documents.
- `report`: the result as Markdown.
"""
