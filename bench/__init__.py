"""Benchmarks. They are not tests: nothing fails if a figure changes."""
