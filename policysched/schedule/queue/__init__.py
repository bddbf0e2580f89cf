"""The scheduling queue: which pending pod is tried next, and which waits for what.

Comes in: pending pods, outcomes of attempts, changes of the cluster. Goes out: the next pod. `parts` are the active,
the backoff and the unschedulable queue; `hints` ask plugins whether a change helps a pod, `asking` bounds how much
they are asked; `timers` wake pods that time alone may help.
"""
