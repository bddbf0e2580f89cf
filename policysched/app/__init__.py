"""Logic of the commands: run, dry-run, why, plan, check, fmt, convert, test, record, replay, webhook, demo.

Only `cli` and `testing` import this package. It creates clocks, random sources and connections, and passes them to
lower packages.

| package | contents |
|---|---|
| `running`, `serving` | the scheduler process and its HTTPS port |
| `configuration`, `plugins` | KubeSchedulerConfiguration files, profiles, out-of-tree plugins |
| `dry_run`, `why`, `plan`, `policy_tests` | decisions about given objects |
| `recording`, `replay` | records of decisions |
| `checking`, `rewriting`, `webhook` | validation, format and API version of policies |
| `files` | objects of YAML and JSON files |
| `demo` | sandbox and scheduler together |
"""
