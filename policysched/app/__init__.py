"""The application layer behind the commands: run, dry-run, check, fmt, plan, why, test, webhook, demo.

Comes in: flags, files, kubeconfigs. Goes out: what the commands print. `running` is the scheduler with its connection;
`dry_run` decides once over given objects; `configuration` makes profiles of a configuration file; `checking` and
`formatting` are `check` and `fmt`, over objects that `files` reads; `demo` has a sandbox and a scheduler together.
"""
