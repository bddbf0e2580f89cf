"""Metric flags (disabled metrics, allowed label values) and the series of /metrics/resources.

Comes in: flags that leave metrics and values of labels out, and pods. Goes out: a limited collector, and the series of
/metrics/resources.
"""
