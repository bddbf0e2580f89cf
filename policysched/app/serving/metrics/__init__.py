"""What is told under /metrics besides the scheduler's own collectors.

Comes in: flags that leave metrics and values of labels out, and pods. Goes out: a limited collector, and the series of
/metrics/resources.
"""
