"""The scheduling queue: which pending pod is tried next, and which waits for what.

Comes in: pending pods, outcomes of attempts, changes of the cluster. Goes out: the next pod. `queue` is the whole,
`subqueues` are the active, the backoff and the unschedulable queue; `hints` ask plugins whether a change helps a pod,
for a bounded share of the time; `timers` wake pods that time alone may help; `in_flight` keeps the changes that arrive
during an attempt.
"""
