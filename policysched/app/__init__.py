"""The application layer behind the commands: run, dry-run, why, plan, check, fmt, test, record, replay, webhook, demo.

Comes in: flags, files, kubeconfigs. Goes out: what the commands print. `running` is the scheduler with its connection,
`serving` its HTTPS port, `recording` what it notes of its decisions; `configuration` makes profiles of a configuration
file, with plugins of others that `plugins` finds. `dry_run`, `why`, `plan` and `replay` ask the same engine about given
objects. `checking` and `formatting` are `check` and `fmt`, `policy_tests` is `test`, over objects that `files` reads;
`webhook` checks policies as they are applied, and `demo` has a sandbox and a scheduler together.
"""
