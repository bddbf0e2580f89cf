"""Wiring: the running scheduler, dry-run, check, fmt and demo. Clocks and random sources are made here.

Comes in: flags, files, kubeconfigs. Goes out: what the commands print. `files` reads objects from files, `checking`
and `formatting` look at policies in them, `configuration` makes profiles, `dry_run` decides once over given objects,
`running` is the scheduler with its connection, `demo` has a sandbox with a scheduler in one process.
"""
