"""The demo, and the sandbox with a scheduler that benchmarks and tests share with it.

`sandbox_setup` fills and serves a sandbox, `scheduled_sandbox` adds the scheduler, `demo` and `devices` are the two
demos.
"""
