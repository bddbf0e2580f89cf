"""The demos of `policysched demo`, and their sandbox with a scheduler, which benchmarks and tests also use.

`sandbox_setup` fills and serves a sandbox, `scheduled_sandbox` adds the scheduler. `demo` is the demo of a policy,
`devices` the demo of devices, `gang` the demo of a gang.
"""
