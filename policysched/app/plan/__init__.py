"""Say what a change of policies, configuration or nodes would do to the pods of a cluster, before it is made.

Comes in: a cluster, what is in force on it, and what would be. Goes out: a `Plan`: pods that would land elsewhere or
nowhere, by workload. Both sides are decided by the engine of the scheduler.
"""
