"""A sandbox with our scheduler at work on it, in one process: for the demo, the benchmarks and tests.

Comes in: objects. Goes out: what became of them. `sandbox` serves the API to kubectl as `policysched sandbox` does.
"""
