"""The demo, and what it shares with benchmarks and tests: a sandbox with our scheduler running against it.

Comes in: objects. Goes out: what became of them. `sandbox_setup` fills a sandbox and serves it, as
`policysched sandbox` does; `scheduled_sandbox` runs the scheduler beside it; `demo` is what `policysched demo` plays,
`devices` its story about resource claims.
"""
