"""Benchmarks. No test depends on their figures, except those of `bench.calls`."""
