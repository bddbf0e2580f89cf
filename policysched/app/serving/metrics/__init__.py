"""Limits of metrics (disabled metrics, allowed label values) and the series of /metrics/resources."""
